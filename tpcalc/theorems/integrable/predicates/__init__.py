"""Theorems as predicates: hypotheses, an answer, and claims beside what is derived."""
