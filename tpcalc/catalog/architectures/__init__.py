"""Architectures: forward programs of one input, one file each."""
