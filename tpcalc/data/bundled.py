"""The handwritten digits that scikit-learn carries: real data without a download."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from tpcalc import checks
from tpcalc.data.pixels import Part, prepared
from tpcalc.errors import StudyError
from tpcalc.results import Samples
from tpcalc.results.images import Images

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TEST_EVERY = 5


def digits(
    classes: Sequence[int] = (0, 1),
    samples: int | None = None,
    seed: int = 0,
    standardise: bool = True,
    encoding: str | None = None,
) -> Samples:
    """Images of 8 x 8 pixels of handwritten digits.

    Standardised, every pixel is centred and brought to variance 1 over all 1797 images (whichever
    classes are asked for, so that a sample does not change with the question); pixels that never
    vary become 0; then all images are divided by the one number that makes the mean of their
    squared norms 1. A first layer with N(0, 1) weights thus yields preactivations of variance
    near 1 (exactly ``|x|^2`` for image x).

    The seed shuffles the images of each class; the classes are then dealt in turn, without
    replacement. So a few samples hold every class, and four samples are the first four of eight.

    Args:
        classes: Which digits, each once. In this order they are numbered as targets.
        samples: How many samples; None takes all of these classes.
        seed: Seed of the shuffle.
        standardise: Scale as above; otherwise pixels stay whole numbers from 0 to 16.
        encoding: Targets: ``"sign"`` is one output, -1 for the first of two classes and +1 for
            the second (of two the default); ``"onehot"`` is one output for each class.

    Returns:
        The samples; d is 64.

    Raises:
        UsageError: A seed or a number of samples that is no whole number, classes that are no list.
        StudyError: Classes that are no digits or named twice, too many samples, another encoding.

    Source: Alpaydin, Kaynak, Optical recognition of handwritten digits, test set, UCI repository.

    Example:
        >>> data = digits((3, 8), samples=4)
        >>> data.dimension, data.targets
        (64, ((-1.0,), (1.0,), (-1.0,), (1.0,)))
    """
    kinds = _checked_classes(classes)
    seed = checks.seed(seed)
    encoding = _checked_encoding(encoding, len(kinds))
    images, labels = _load()
    if standardise:
        images = _standardised(images)
    chosen = _dealt(labels, kinds, seed)
    place = f"digits {','.join(map(str, kinds))}"
    if samples is not None:
        hint = f"These classes have {len(chosen)}; more classes have more."
        chosen = chosen[: checks.whole(samples, "samples", least=1, most=len(chosen), hint=hint)]
    return Samples(
        inputs=tuple(tuple(map(float, images[index])) for index in chosen),
        targets=tuple(
            _target(kinds.index(int(labels[index])), kinds, encoding) for index in chosen
        ),
        origin=f"{place}, {len(chosen)} samples, seed {seed}"
        + ("" if standardise else ", raw pixels"),
    )


def digits_images(
    *,
    standardise: bool = True,
    train: int | None = None,
    test: int | None = None,
    seed: int = 0,
) -> Images:
    """The 1797 images of 8 x 8 pixels of all ten digits, split for training and test.

    The seed shuffles the images of each class; every fifth one of a class is a test image, so
    that both parts have the shares of the whole. Pixels are divided by 16 and then brought to
    mean 0 and variance 1 by the mean and the standard deviation of all training pixels together,
    as those of MNIST are.

    Source:
        Alpaydin, Kaynak, Optical recognition of handwritten digits, test set, UCI repository.

    Example:
        >>> found = digits_images(train=100)
        >>> found.train.shape, found.test.shape
        ((100, 64), (364, 64))
    """
    import numpy as np

    seed = checks.seed(seed)
    images, labels = _load()
    rows = np.array(_dealt(labels, tuple(range(10)), seed))
    kinds = labels[rows]
    rank = np.zeros(len(rows), dtype=np.int64)
    for kind in range(10):
        rank[kinds == kind] = np.arange((kinds == kind).sum())
    held_out = rank % _TEST_EVERY == 0
    pixels = images.astype(np.int64)
    return prepared(
        *(Part(pixels[rows[part]], kinds[part]) for part in (~held_out, held_out)),
        top=16,
        standardise=standardise,
        limits=(train, test),
        seed=seed,
        origin=f"digits, split by seed {seed}",
    )


def _checked_classes(classes: Sequence[int]) -> tuple[int, ...]:
    kinds = checks.sequence(classes, "classes", hint="Write classes=(0, 1).")
    bad = [kind for kind in kinds if kind not in range(10)]
    if bad or len(kinds) < 2 or len(set(kinds)) < len(kinds):
        raise StudyError(
            f"the classes are {', '.join(map(str, kinds)) or 'none'}; "
            "two or more different digits from 0 to 9 are needed.",
            where="digits",
            hint="For example 0,1.",
        )
    return kinds


def _checked_encoding(encoding: str | None, kinds: int) -> str:
    if encoding is None:
        return "sign" if kinds == 2 else "onehot"
    checks.one_of("encoding of targets", encoding, ("sign", "onehot"))
    if encoding == "sign" and kinds != 2:
        raise StudyError(
            f"the sign tells two classes apart, not {kinds}.", where="digits", hint="Use 'onehot'."
        )
    return encoding


def _load() -> tuple[NDArray[Any], NDArray[Any]]:
    """The table as scikit-learn carries it, which is not imported: that takes a second."""
    from importlib.util import find_spec
    from pathlib import Path

    import numpy as np

    spec = find_spec("sklearn")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz"
    table = np.loadtxt(path, delimiter=",")
    return table[:, :-1], table[:, -1].astype(np.int64)


def _standardised(images: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    centred = images - images.mean(axis=0)
    spread = centred.std(axis=0)
    scaled: NDArray[Any] = centred / np.where(spread > 0, spread, 1.0)
    scaled /= np.sqrt((scaled**2).sum(axis=1).mean())
    return scaled


def _dealt(labels: NDArray[Any], kinds: tuple[int, ...], seed: int) -> list[int]:
    import numpy as np

    order = np.random.default_rng(seed).permutation(len(labels))
    piles = [[int(index) for index in order if labels[index] == kind] for kind in kinds]
    return [index for deal in zip_longest(*piles) for index in deal if index is not None]


def _target(number: int, kinds: tuple[int, ...], encoding: str) -> tuple[float, ...]:
    if encoding == "sign":
        return (1.0 if number else -1.0,)
    return tuple(float(other == number) for other in range(len(kinds)))
