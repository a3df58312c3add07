"""Squared singular values of weights and Jacobians: S-transforms, laws, finite widths, probes."""
