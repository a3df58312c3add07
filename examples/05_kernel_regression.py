"""Regression with the kernels of an infinite network: mean and variance at unseen digits."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

import tpcalc as tp


def main(train: int = 800, test: int = 200, depth: int = 3, noise: float = 1e-2) -> None:
    data = tp.digits(samples=train + test, seed=0, classes=tuple(range(10)))
    inputs = np.array(data.inputs)
    targets = np.array(data.targets)
    net = tp.MLP(depth, "relu", weight_variance=2)
    found = tp.kernel(net, inputs, scale=1)  # the images have norms near 1
    print(found)

    for kind in found.kinds:
        whole = found.matrix(kind)
        seen, across, unseen = whole[:train, :train], whole[train:, :train], whole[train:, train:]
        factor = cho_factor(seen + noise * np.eye(train))
        mean = across @ cho_solve(factor, targets[:train])
        right = np.mean(np.argmax(mean, axis=1) == np.argmax(targets[train:], axis=1))
        line = f"{kind}: {right:.1%} of {test} unseen digits"
        if kind == "nngp":  # the posterior of a Gaussian process
            variance = np.diag(unseen) - np.sum(across * cho_solve(factor, across.T).T, axis=1)
            line += f", standard deviation {np.sqrt(variance).mean():.2f}"
        print(line)


if __name__ == "__main__":
    main()
