"""Practice: guidelines for networks, activations made for a target, and what blocks do."""
