"""Sets of images by name: what study files and the command line write."""

from __future__ import annotations

import os
from collections.abc import Callable

from tpcalc import checks
from tpcalc.data.bundled import digits_images
from tpcalc.data.cifar import cifar10
from tpcalc.data.mixture import mixture_images
from tpcalc.data.mnist import mnist
from tpcalc.errors import UnknownName, UsageError
from tpcalc.results.images import Images

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
