"""Networks of finite width made from layers: weights of any family, biases, norms, sums."""
