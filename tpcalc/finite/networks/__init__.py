"""Networks of finite width in torch: the program of a network, read on batches."""
