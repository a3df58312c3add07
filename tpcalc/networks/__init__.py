"""Networks: forward programs whose parameters are marked; layers and architectures write them."""
