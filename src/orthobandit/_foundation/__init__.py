"""Numerics, random streams, compilation, files and checks that every other package builds on."""
