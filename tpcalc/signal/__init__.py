"""Signal propagation: the mean-field state of inputs carried through a graph of layers."""
