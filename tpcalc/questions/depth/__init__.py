"""Limits in the depth: orders in L of a block that is repeated L times."""
