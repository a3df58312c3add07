"""IDX files: what is read, and at which byte a bad one is refused."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_files import idx

from tpcalc.data import read_idx
from tpcalc.errors import StudyError, UsageError

CUBE = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


def written(folder: Path, content: bytes, name: str = "array.idx") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.booleans(), st.randoms())
def test_every_array_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], packed: bool, random: object
) -> None:
    array = np.frombuffer(random.randbytes(int(np.prod(shape))), dtype=np.uint8)  # type: ignore[attr-defined]
    content = idx(array.reshape(shape))
    path = written(tmp_path_factory.mktemp("idx"), gzip.compress(content) if packed else content)
    found = read_idx(path, len(shape))
    assert found.dtype == np.uint8
    assert np.array_equal(found, array.reshape(shape))


def test_the_name_does_not_decide_whether_a_file_is_packed(tmp_path: Path) -> None:
    plain = written(tmp_path, idx(CUBE), "plain.gz")
    packed = written(tmp_path, gzip.compress(idx(CUBE)), "packed")
    assert np.array_equal(read_idx(plain, 3), read_idx(packed, 3))


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path, packed: bool) -> None:
    content = gzip.compress(idx(CUBE), mtime=0) if packed else idx(CUBE)
    for end in range(len(content)):
        with pytest.raises(StudyError, match=r"byte \d+|unpacked byte \d+"):
            read_idx(written(tmp_path, content[:end]), 3)


def test_a_cut_is_named_by_byte(tmp_path: Path) -> None:
    content = idx(CUBE)
    with pytest.raises(StudyError, match="ends at byte 30; by its header it has 40 bytes"):
        read_idx(written(tmp_path, content[:30]), 3)
    with pytest.raises(StudyError, match="ends at byte 30; by its header it has 40 bytes"):
        read_idx(written(tmp_path, gzip.compress(content[:30])), 3)
    with pytest.raises(StudyError, match="ends at byte 9, inside its header of 16 bytes"):
        read_idx(written(tmp_path, content[:9]), 3)


@given(st.integers(0, 39), st.integers(0, 255))
def test_one_wrong_byte_is_refused_or_another_pixel(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: int
) -> None:
    content = bytearray(idx(CUBE))
    changed = value != content[at]
    content[at] = value
    path = written(tmp_path_factory.mktemp("idx"), bytes(content))
    if at < 16 and changed:
        with pytest.raises(StudyError, match="byte"):
            read_idx(path, 3)
    else:
        assert read_idx(path, 3).ravel().tolist() == list(content[16:])


@given(st.binary(max_size=60))
def test_any_bytes_behind_a_gzip_header_are_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    with pytest.raises(StudyError):
        read_idx(written(tmp_path_factory.mktemp("idx"), b"\x1f\x8b\x08" + content), 3)


BAD = {
    "first byte": (b"PK\x03\x04" + idx(CUBE), "byte 0: 0x50, expected 0x00; this is no IDX file"),
    "second byte": (b"\x00\x01" + idx(CUBE)[2:], "byte 1: 0x01, expected 0x00"),
    "32-bit": (b"\0\0\x0c" + idx(CUBE)[3:], r"byte 2: type code 0x0c \(32-bit integers\), exp"),
    "unknown type": (b"\0\0\x77" + idx(CUBE)[3:], "byte 2: type code 0x77, expected 0x08"),
    "labels": (idx(CUBE.ravel()), "byte 3: 1 dimensions, expected 3.* exchanged"),
    "no image": (idx(CUBE)[:4] + bytes(4) + idx(CUBE)[8:], "byte 4: a dimension is 0"),
    "no column": (idx(CUBE)[:12] + bytes(4), "byte 12: a dimension is 0"),
    "trailing": (idx(CUBE) + b"\0", "the array ends at byte 40, and the file goes on"),
    "trailing, packed": (gzip.compress(idx(CUBE) + b"\0"), "the array ends at byte 40"),
    "bytes behind gzip": (gzip.compress(idx(CUBE)) + b"rest", "gzip data is damaged"),
    "checksum": (gzip.compress(idx(CUBE))[:-8] + bytes(8), "gzip data is damaged.*byte 40"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named_with_byte_and_reason(tmp_path: Path, name: str) -> None:
    content, message = BAD[name]
    path = written(tmp_path, content)
    with pytest.raises(StudyError, match=message) as caught:
        read_idx(path, 3)
    assert caught.value.where == str(path)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("sizes", [(2**32 - 1,) * 3, (10**6, 28, 28), (600_000, 28, 28)])
def test_a_claimed_size_takes_no_memory(
    tmp_path: Path, sizes: tuple[int, ...], packed: bool
) -> None:
    header = b"\0\0\x08\x03" + b"".join(size.to_bytes(4, "big") for size in sizes)
    content = gzip.compress(header + bytes(99)) if packed else header + bytes(99)
    path = written(tmp_path, content)
    tracemalloc.start()
    with pytest.raises(StudyError, match=r"bytes 4 to 15: an array of|ends at byte 115"):
        read_idx(path, 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6


def test_a_bomb_is_unpacked_no_further_than_its_header_says(tmp_path: Path) -> None:
    bomb = gzip.compress(idx(CUBE) + bytes(50_000_000), compresslevel=1)
    assert len(bomb) < 500_000
    tracemalloc.start()
    with pytest.raises(StudyError, match="the array ends at byte 40"):
        read_idx(written(tmp_path, bomb), 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6


def test_missing_files_folders_and_strange_paths(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="there is no such file"):
        read_idx(tmp_path / "nowhere", 1)
    with pytest.raises(StudyError, match="a folder, not a file"):
        read_idx(tmp_path, 1)
    with pytest.raises(StudyError):
        read_idx("zero\0byte", 1)
    with pytest.raises(StudyError):
        read_idx("long" * 1000, 1)
    with pytest.raises(UsageError, match="the path of a file"):
        read_idx(3, 1)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="dimensions is 0"):
        read_idx(tmp_path, 0)
