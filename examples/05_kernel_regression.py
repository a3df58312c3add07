"""Digits by the kernels of an infinite network: regression, its spread, a support vector machine.

Inference with the NNGP and training to the end with the NTK say means and standard deviations, with
what the errors of the kernels make of them; scikit-learn takes the same kernels.
"""

import numpy as np
from sklearn.svm import SVC

import tpcalc as tp


def main(train: int = 800, test: int = 200, depth: int = 3, noise: float = 1e-2) -> None:
    data = tp.digits(samples=train + test, seed=0, classes=tuple(range(10)))
    inputs, targets = np.array(data.inputs), np.array(data.targets)
    labels = targets.argmax(axis=1)
    net = tp.MLP(depth, "relu", weight_variance=2)
    asked = {"scale": 1}  # the images have norms near 1
    seen = tp.kernel(net, inputs[:train], **asked)
    across = tp.kernel(net, inputs[train:], inputs[:train], **asked)
    unseen = tp.kernel(net, inputs[train:], **asked)
    print(seen)

    for kind in ("nngp", "ntk"):
        found = seen.predict(targets[:train], across, unseen, kind=kind, ridge=noise)
        share = found.accuracy(labels[train:])
        print(
            f"{kind}: {share.value:.1%} of {test} unseen digits, standard deviation "
            f"{found.deviation.mean():.2f}, means known to {found.mean_error.max():.0e}"
        )
    evidence = seen.log_likelihood(targets[:train], ridge=noise)
    print(f"log marginal likelihood: {evidence.value:.1f}")

    machine = SVC(kernel=tp.KernelFunction(net, "ntk", scale=1))
    right = machine.fit(inputs[:train], labels[:train]).score(inputs[train:], labels[train:])
    print(f"support vectors with the ntk: {right:.1%}")


if __name__ == "__main__":
    main()
