"""Designs: distributions over arms that identify the gaps between them."""
