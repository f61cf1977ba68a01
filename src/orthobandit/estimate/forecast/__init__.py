"""Forecasts of the moving baseline: the contract, the baselines, and their compiled steps."""
