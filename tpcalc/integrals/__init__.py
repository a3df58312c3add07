"""Gaussian averages: closed forms first, then quadrature, each with a bound on its error."""
