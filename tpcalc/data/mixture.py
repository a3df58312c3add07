"""Points around ten centres: a stand-in for images where there are none."""

from __future__ import annotations

from tpcalc import checks
from tpcalc.results.images import Images

_CLASSES = 10


def mixture_images(
    *,
    dimension: int = 64,
    separation: float = 5.0,
    train: int | None = None,
    test: int | None = None,
    seed: int = 0,
) -> Images:
    """A mixture of ten spherical Gaussians, one for each class.

    Centres are drawn from N(0, s^2/(2d)) in every coordinate, so that the squared distance of two
    of them is s^2 in the mean; points are their centre plus N(0, 1) in every coordinate. With
    s = 5 the best classifier is right on some 94 % of the points. All coordinates are then
    brought to mean 0 and variance 1 by one mean and one standard deviation, those of the training
    points. Classes are equally frequent, up to one point.

    Centres, training points and test points have streams of their own: to take fewer of one
    changes nothing of the others.

    Source:
        Hastie, Tibshirani, Friedman, The elements of statistical learning, 4.3 (Gaussian classes
        with a common covariance).

    Example:
        >>> mixture_images(train=500, test=100)
        500 training and 100 test images of 64 pixels, 10 classes, Gaussian mixture, ...
    """
    import numpy as np

    sizes = [
        checks.whole(6000 if train is None else train, "train", least=1),
        checks.whole(1000 if test is None else test, "test", least=1),
    ]
    dimension = checks.whole(dimension, "dimension", least=1)
    distance = float(checks.real(separation, "separation", least=0))
    seed = checks.seed(seed)
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3)]
    centres = streams[0].standard_normal((_CLASSES, dimension)) * distance / (2 * dimension) ** 0.5
    parts = []
    for size, stream in zip(sizes, streams[1:], strict=True):
        labels = stream.permutation(np.arange(size) % _CLASSES)
        parts.append((centres[labels] + stream.standard_normal((size, dimension)), labels))
    mean, spread = parts[0][0].mean(), parts[0][0].std()
    points = [((pixels - mean) / spread, labels) for pixels, labels in parts]
    return Images(
        *points[0],
        *points[1],
        classes=_CLASSES,
        origin=f"Gaussian mixture, distance {distance:g}, seed {seed}",
    )
