"""How nonlinear a function of torch tensors is under its inputs, as a whole and layer by layer."""
