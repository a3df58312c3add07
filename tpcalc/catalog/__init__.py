"""The catalogue: names for activations, parameterizations, losses and networks; one file each."""
