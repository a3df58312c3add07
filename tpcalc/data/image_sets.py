"""Sets of images by name, as study files write them; points around centres stand in for images."""

from __future__ import annotations

import os
from collections.abc import Callable

from tpcalc import checks
from tpcalc.data.bundled import digits_images
from tpcalc.data.cifar import cifar10
from tpcalc.data.idx import mnist
from tpcalc.errors import UnknownName, UsageError
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


_MADE: dict[str, Callable[..., Images]] = {"digits": digits_images, "mixture": mixture_images}
_READ: dict[str, Callable[..., Images]] = {"mnist": mnist, "cifar10": cifar10}
_KNOWN = (*_MADE, *(f"{name}:FOLDER" for name in _READ))


def images(
    text: str, *, train: int | None = None, test: int | None = None, seed: int = 0
) -> Images:
    """Images by name.

    Args:
        text: ``"digits"`` (bundled with scikit-learn), ``"mixture"`` (Gaussian classes),
            ``"mnist:FOLDER"`` or ``"cifar10:FOLDER"`` (gray), where the folder is the one that
            their functions take.
        train: How many training images; None takes all.
        test: How many test images; None takes all.
        seed: Seed of what is drawn, split or chosen.

    Returns:
        The images, scaled to mean 0 and variance 1.

    Raises:
        UnknownName: Another name.
        UsageError: A folder is missing or is given where none is read; or a number of images or
            a seed that is none.
        StudyError: The files cannot be used, or more images are asked for than there are.

    Example:
        >>> images("digits", train=1000, test=200).train.shape
        (1000, 64)
    """
    name = image_set(text)
    if name in _MADE:
        return _MADE[name](train=train, test=test, seed=seed)
    # Path.expanduser raises where a home is unknown; a shell leaves "~" behind the colon alone.
    place = os.path.expanduser(text.partition(":")[2])  # noqa: PTH111
    return _READ[name](place, train=train, test=test, seed=seed)


def image_set(text: str) -> str:
    """The set that a text names, without its folder; nothing is read.

    Example:
        >>> image_set("mnist:data/mnist")
        'mnist'
    """
    name, colon, folder = checks.text(text, "images", hint=_hint()).partition(":")
    if name in _MADE:
        if colon:
            raise UsageError(f"{name} reads no folder, and {text!r} names one.", hint=_hint())
    elif name not in _READ:
        raise UnknownName("set of images", text, _KNOWN)
    elif not folder.strip():
        raise UsageError(f"{name} needs the folder of its files.", hint=f"Write {name}:FOLDER.")
    return name


def _hint() -> str:
    return f"Write one of {', '.join(_KNOWN)}."
