"""Small files in the forms that MNIST and CIFAR-10 come in."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MNIST_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
CIFAR_FILES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")


def idx(array: NDArray[Any]) -> bytes:
    """An array of bytes in the IDX format."""
    shape = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + shape + array.astype(np.uint8).tobytes()


def mnist_arrays(train: int = 12, test: int = 6) -> list[NDArray[Any]]:
    """Random images with their labels, for training and test."""
    draw = np.random.default_rng(3)
    found = []
    for size in (train, test):
        found.append(draw.integers(0, 256, (size, 28, 28), dtype=np.uint8))
        found.append((np.arange(size) % 10).astype(np.uint8))
    return found


def mnist_folder(
    folder: Path,
    arrays: list[NDArray[Any]],
    spelled: Callable[[str], str] = str,
    *,
    packed: bool = False,
) -> Path:
    """The four files of MNIST, under names as given."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in zip(MNIST_FILES, arrays, strict=True):
        content = idx(array)
        (folder / spelled(name)).write_bytes(gzip.compress(content, mtime=0) if packed else content)
    return folder


def cifar_arrays(size: int = 3) -> list[tuple[NDArray[Any], list[int]]]:
    """Six batches of random images with their labels."""
    draw = np.random.default_rng(4)
    return [
        (draw.integers(0, 256, (size, 3072), dtype=np.uint8), draw.integers(0, 10, size).tolist())
        for _ in CIFAR_FILES
    ]


def batch(pixels: Any, labels: Any, protocol: int = 2) -> bytes:
    """A batch of the python version, as Python 3 writes it."""
    return pickle.dumps(
        {b"batch_label": b"batch", b"labels": labels, b"data": pixels, b"filenames": [b"a.png"]},
        protocol,
    )


def records(pixels: NDArray[Any], labels: list[int]) -> bytes:
    """A batch of the binary version."""
    return b"".join(
        bytes([label]) + row.tobytes() for row, label in zip(pixels, labels, strict=True)
    )


def cifar_folder(folder: Path, contents: list[bytes], ending: str = "") -> Path:
    """Six batches."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in zip(CIFAR_FILES, contents, strict=True):
        (folder / f"{name}{ending}").write_bytes(content)
    return folder
