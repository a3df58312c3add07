"""Closure: a limit graph reduced to Gaussian integrals that closed forms and quadrature evaluate.

A vector of a limit graph is a function of Gaussians (start vectors and hats); as long as every
expectation needs at most a few of them, nothing has to be sampled.
"""
