"""Closed forms and formulas for exponents, each with its value, its error and its source."""
