"""Programs of networks as layers: matrix products, and functions of one vector between them."""
