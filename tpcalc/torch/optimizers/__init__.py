"""Optimizers of torch: their classes as texts, and the recipe of a family of modules."""
