"""The Tensor Program language: nodes, programs, rule tables, text, JSON."""
