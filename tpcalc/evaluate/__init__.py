"""Numbers for limits: which evaluator answered, and how sure it is."""
