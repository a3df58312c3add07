"""Nonlinearity of functions that are given as they are: formulas, code and data."""
