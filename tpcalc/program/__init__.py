"""The Tensor Program language: nodes, programs, tables of rules, text and JSON."""
