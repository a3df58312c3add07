"""Finite width: the raw program at a given n, with matrices formed or revealed lazily."""
