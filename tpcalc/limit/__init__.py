"""Limit rules: from programs to random variables Z, and their formulas."""
