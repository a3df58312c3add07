"""NNGP and NTK kernels: their routes, their tiles, and how far entries may be off."""
