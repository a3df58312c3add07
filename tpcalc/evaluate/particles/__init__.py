"""Particles: samples of all base Gaussians carried through a limit graph."""
