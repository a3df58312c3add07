"""Networks: forward programs whose parameters are marked, and ways to write them."""
