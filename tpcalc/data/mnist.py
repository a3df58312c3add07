"""MNIST, and the sets of the same form, from a local folder."""

from __future__ import annotations

from pathlib import Path

from tpcalc import checks
from tpcalc.data.files import present
from tpcalc.data.idx import read_idx
from tpcalc.data.pixels import Part, labelled, prepared
from tpcalc.errors import StudyError
from tpcalc.results.images import Images

_SIDE = 28
_INSIDE = (".", "raw", "MNIST/raw")
_STEMS = ("train-images", "train-labels", "t10k-images", "t10k-labels")


def mnist(
    folder: str | Path,
    *,
    standardise: bool = True,
    train: int | None = None,
    test: int | None = None,
    seed: int = 0,
) -> Images:
    """MNIST from its four files, or another set in such files (Fashion-MNIST, KMNIST).

    Pixels are divided by 255 and then brought to mean 0 and variance 1 by the mean and the
    standard deviation of all training pixels together, one number each.

    Source:
        LeCun, Cortes, Burges, The MNIST database of handwritten digits.

    Example:
        >>> mnist("data/nowhere")
        Traceback (most recent call last):
        tpcalc.errors.StudyError: TPC100 data/nowhere: this is no folder that exists. ...
    """
    place = checks.file(folder, "folder")
    files = _files(place)
    return prepared(
        _part(*files[:2]),
        _part(*files[2:]),
        top=255,
        standardise=standardise,
        limits=(train, test),
        seed=seed,
        origin=f"MNIST files of {place}",
    )


def _files(folder: Path) -> list[Path]:
    found = {stem: present(folder, _INSIDE, _spellings(stem)) for stem in _STEMS}
    missing = [_spellings(stem)[0] for stem, path in found.items() if path is None]
    if missing:
        raise StudyError(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing.",
            where=str(folder),
            hint="The folder needs all four files of MNIST, as they are or as .gz.",
        )
    return [path for path in found.values() if path is not None]


def _spellings(stem: str) -> tuple[str, ...]:
    kind = "idx3-ubyte" if stem.endswith("images") else "idx1-ubyte"
    return tuple(f"{stem}{dot}{kind}{end}" for end in ("", ".gz") for dot in ("-", "."))


def _part(images: Path, labels: Path) -> Part:
    pixels, kinds = read_idx(images, 3), read_idx(labels, 1)
    if pixels.shape[1:] != (_SIDE, _SIDE):
        raise StudyError(
            f"bytes 8 to 15: images of {pixels.shape[1]} x {pixels.shape[2]} pixels; "
            f"those of MNIST have {_SIDE} x {_SIDE}.",
            where=str(images),
        )
    return labelled(pixels.reshape(len(pixels), -1), kinds, images, labels, first_byte=8)
