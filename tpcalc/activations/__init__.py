"""Activations and functions of rows: what an entry is, and what a user hands over for one."""
