"""CIFAR-10 from six batches."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_files import CIFAR_FILES, batch, cifar_arrays, cifar_folder, records

from tpcalc.data import cifar10
from tpcalc.errors import StudyError, UsageError

ARRAYS = cifar_arrays()
TRAIN = np.concatenate([pixels for pixels, _ in ARRAYS[:5]])
LABELS = [label for _, labels in ARRAYS[:5] for label in labels]


def python(folder: Path, protocol: int = 2) -> Path:
    return cifar_folder(folder, [batch(*part, protocol) for part in ARRAYS])


def binary(folder: Path) -> Path:
    return cifar_folder(folder, [records(*part) for part in ARRAYS], ".bin")


def test_colour_pixels_and_labels_are_those_of_the_batches_in_order(tmp_path: Path) -> None:
    found = cifar10(python(tmp_path), gray=False, standardise=False)
    assert (found.dimension, found.classes) == (3072, 10)
    assert np.array_equal(found.train * 255, TRAIN.astype(np.float32))
    assert found.train_labels.tolist() == LABELS
    assert np.array_equal(found.test * 255, ARRAYS[5][0].astype(np.float32))
    assert found.test_labels.tolist() == ARRAYS[5][1]


def test_gray_is_the_luminance(tmp_path: Path) -> None:
    found = cifar10(python(tmp_path), standardise=False)
    red, green, blue = np.moveaxis(TRAIN.reshape(-1, 3, 1024) / 255, 1, 0)
    assert found.dimension == 1024
    assert np.abs(found.train - (0.299 * red + 0.587 * green + 0.114 * blue)).max() < 1e-7


def test_standardised_by_the_training_images(tmp_path: Path) -> None:
    folder = python(tmp_path)
    unit = cifar10(folder, standardise=False)
    found = cifar10(folder)
    mean, spread = unit.train.mean(dtype=np.float64), unit.train.std(dtype=np.float64)
    assert np.abs(found.train - (unit.train - mean) / spread).max() < 1e-6
    assert np.abs(found.test - (unit.test - mean) / spread).max() < 1e-6


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_both_versions_and_all_protocols_are_the_same_images(tmp_path: Path, protocol: int) -> None:
    pickled = cifar10(python(tmp_path / "cifar-10-batches-py", protocol).parent)
    stored = cifar10(binary(tmp_path / "other" / "cifar-10-batches-bin").parent)
    assert pickled.digest == stored.digest


def test_labels_may_be_bytes_too(tmp_path: Path) -> None:
    contents = [batch(part[0], np.array(part[1], dtype=np.uint8)) for part in ARRAYS]
    assert cifar10(cifar_folder(tmp_path, contents)).train_labels.tolist() == LABELS


def test_limits(tmp_path: Path) -> None:
    folder = python(tmp_path)
    few, more = cifar10(folder, train=4, test=1), cifar10(folder, train=9)
    assert np.array_equal(few.train, more.train[:4])
    assert len(few.test) == 1
    with pytest.raises(StudyError, match="train is 16; it must be at most 15"):
        cifar10(folder, train=16)
    with pytest.raises(UsageError, match="seed is 'a'"):
        cifar10(folder, seed="a")  # type: ignore[arg-type]


def test_missing_batches_are_named(tmp_path: Path) -> None:
    folder = python(tmp_path)
    (folder / "data_batch_3").unlink()
    with pytest.raises(StudyError, match="data_batch_3 is missing"):
        cifar10(folder)
    (folder / "test_batch").unlink()
    with pytest.raises(StudyError, match="data_batch_3, test_batch are missing"):
        cifar10(folder)
    with pytest.raises(StudyError, match="no folder that exists"):
        cifar10(tmp_path / "nowhere")


def test_missing_batches_of_the_version_of_which_more_is_there(tmp_path: Path) -> None:
    folder = binary(tmp_path)
    (folder / "data_batch_1").write_bytes(b"")
    (folder / "data_batch_5.bin").unlink()
    with pytest.raises(StudyError, match=r"data_batch_5\.bin is missing"):
        cifar10(folder)


def test_an_archive_is_to_be_unpacked(tmp_path: Path) -> None:
    (tmp_path / "cifar-10-python.tar.gz").write_bytes(b"")
    with pytest.raises(StudyError, match=r"Unpack the archive first: tar xzf cifar-10-python"):
        cifar10(tmp_path)


PIXELS, KINDS = ARRAYS[2]
BAD: dict[str, tuple[bytes, str]] = {
    "no data": (pickle.dumps({b"labels": KINDS}), "the dictionary has no 'data'"),
    "CIFAR-100": (
        pickle.dumps({b"data": PIXELS, b"fine_labels": KINDS}, 2),
        "has no 'labels'.*CIFAR-100 do not",
    ),
    "narrow": (batch(PIXELS[:, :1024], KINDS), r"'data' has shape \(3, 1024\)"),
    "four dimensions": (batch(PIXELS.reshape(3, 3, 32, 32), KINDS), r"shape \(3, 3, 32, 32\)"),
    "no array": (batch([1, 2], KINDS), "'data' has no array"),
    "floats": (batch(PIXELS / 255, KINDS), "an array of type 'f8'"),
    "labels short": (batch(PIXELS, KINDS[:2]), "2 labels; it has 3 images"),
    "labels of words": (batch(PIXELS, ["cat"] * 3), "'labels' is no list of whole numbers"),
    "labels of truths": (batch(PIXELS, [True] * 3), "'labels' is no list of whole numbers"),
    "label 10": (batch(PIXELS, [0, 10, 0]), "the label of image 1 is 10; labels are 0 to 9"),
    "label -1": (batch(PIXELS, [0, 0, -1]), "the label of image 2 is -1"),
    "huge label": (batch(PIXELS, [1 << 20_000, 0, 0]), "image 0 is a number of 20001 bits"),
    "byte label": (batch(PIXELS, np.full(3, 11, dtype=np.uint8)), "the label of image 0 is 11"),
    "other number": (batch(PIXELS[:2], KINDS[:2]), "2 images; data_batch_1 has 3, and all"),
    "no images": (batch(PIXELS[:0], [], 4), "there are no images in it"),
}


@pytest.mark.parametrize("name", BAD)
def test_batches_that_do_not_fit(tmp_path: Path, name: str) -> None:
    content, message = BAD[name]
    folder = python(tmp_path)
    (folder / "data_batch_3").write_bytes(content)
    with pytest.raises(StudyError, match=message) as caught:
        cifar10(folder)
    assert caught.value.where == str(folder / "data_batch_3")


def test_a_hostile_batch_is_refused_with_nothing_run(tmp_path: Path) -> None:
    sign = tmp_path / "sign"

    class Hostile:
        def __reduce__(self) -> Any:
            return (os.system, (f"touch {sign}",))

    folder = python(tmp_path)
    (folder / "test_batch").write_bytes(pickle.dumps({b"data": PIXELS, b"labels": Hostile()}, 2))
    with pytest.raises(StudyError, match=r"byte \d+: asks for '\w+\.system'.*Nothing in"):
        cifar10(folder)
    assert not sign.exists()


def test_records_that_do_not_fit(tmp_path: Path) -> None:
    folder = binary(tmp_path)
    path = folder / "data_batch_4.bin"
    whole = path.read_bytes()
    wrong = bytearray(whole)
    wrong[3073] = 77
    path.write_bytes(wrong)
    with pytest.raises(StudyError, match="byte 3073: the label of image 1 is 77"):
        cifar10(folder)
    path.write_bytes(whole + b"\0")
    with pytest.raises(StudyError, match="ends at byte 9220, 1 bytes into image 3"):
        cifar10(folder)


@pytest.mark.parametrize("ending", ["", ".bin"])
def test_each_batch_cut_off_is_refused(tmp_path: Path, ending: str) -> None:
    folder = binary(tmp_path) if ending else python(tmp_path)
    for name in (CIFAR_FILES[0], CIFAR_FILES[3], CIFAR_FILES[5]):
        path = folder / f"{name}{ending}"
        whole = path.read_bytes()
        # Whole records too: only the other batches tell that some are missing.
        for end in (0, 1, 3072, 3073, 6146, 9000, len(whole) - 1):
            path.write_bytes(whole[:end])
            with pytest.raises(StudyError, match=r"byte \d+|the same number|no images"):
                cifar10(folder)
        path.write_bytes(whole)


def test_a_batch_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpcalc.data.cifar._LARGEST", 5000)
    with pytest.raises(StudyError, match="more than 5000 bytes"):
        cifar10(binary(tmp_path))
