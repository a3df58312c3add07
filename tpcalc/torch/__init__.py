"""PyTorch modules: read as networks, with their inits, and their optimizers as texts."""
