"""Pickles: which are read, and that hostile ones are refused with nothing run."""

from __future__ import annotations

import io
import os
import pickle
import struct
import time
import tracemalloc
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpcalc.data.pickled import read_pickle
from tpcalc.errors import StudyError

GRID = np.array([[0, 1, 127], [128, 200, 255]], dtype=np.uint8)
PLAIN = {b"data": GRID, b"labels": [1, 300, -70000, 10**12], b"rest": (None, True, "text", {})}
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def read(folder: Path, content: bytes) -> dict[str, Any]:
    path = folder / "batch"
    path.write_bytes(content)
    return read_pickle(path)


def older(content: bytes) -> bytes:
    """The same pickle as numpy 1 wrote it, whose modules had other names."""
    for name in (b"multiarray", b"numeric"):
        new, old = b"numpy._core." + name, b"numpy.core." + name
        content = content.replace(bytes([len(new)]) + new, bytes([len(old)]) + old)
        content = content.replace(new, old)
    return content


def from_python_2() -> bytes:
    """What cPickle of Python 2 wrote by protocol 2: bytes are strings, as in the real batches."""
    state = b"(K\x01K\x02K\x03\x86cnumpy\ndtype\nq\x04U\x02u1K\x00K\x01\x87Rq\x05"
    state += b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
    state += b"T" + struct.pack("<i", GRID.size) + GRID.tobytes() + b"tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\x00\x85U\x01b\x87R"
    labels = b"U\x06labelsq\x01](K\x06K\x09e"
    return b"\x80\x02}q\x00(" + labels + b"U\x04data" + array + state + b"u."


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("spelling", [bytes, older])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_protocol_and_both_spellings_of_numpy(
    tmp_path: Path, protocol: int, spelling: Any, order: str
) -> None:
    content = {**PLAIN, b"data": np.array(GRID, order=order)}  # type: ignore[call-overload]
    packed = spelling(pickle.dumps(content, protocol))
    assert (b"_core" in packed) == (spelling is bytes)
    found = read(tmp_path, packed)
    assert np.array_equal(found["data"], GRID)
    assert found["labels"] == PLAIN[b"labels"]
    assert found["rest"] == PLAIN[b"rest"]


def test_what_python_2_wrote(tmp_path: Path) -> None:
    found = read(tmp_path, from_python_2())
    assert np.array_equal(found["data"], GRID)
    assert found["labels"] == [6, 9]
    trusted = pickle.loads(from_python_2().replace(b".core.", b"._core."), encoding="bytes")
    assert np.array_equal(trusted[b"data"], GRID)


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.binary(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner),
            max_leaves=6,
        ),
        max_size=4,
    ),
    st.sampled_from(PROTOCOLS),
)
def test_plain_values_are_as_pickle_reads_them(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any], protocol: int
) -> None:
    packed = pickle.dumps(content, protocol)
    if b"__builtin__\nbytes" in packed:  # empty bytes in old protocols: a call that is not allowed
        with pytest.raises(StudyError, match=r"asks for '__builtin__\.bytes'"):
            read(tmp_path_factory.mktemp("pickle"), packed)
    else:
        assert read(tmp_path_factory.mktemp("pickle"), packed) == content


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickle_cut_off_anywhere_is_refused(tmp_path: Path, protocol: int) -> None:
    content = pickle.dumps(PLAIN, protocol)
    path = tmp_path / "batch"
    path.write_bytes(content)
    for end in reversed(range(len(content))):
        os.truncate(path, end)
        with pytest.raises(StudyError, match=r"byte \d+"):
            read_pickle(path)


@given(st.data(), st.sampled_from(PROTOCOLS))
def test_damaged_bytes_are_read_or_refused_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, protocol: int
) -> None:
    content = bytearray(pickle.dumps(PLAIN, protocol))
    places = data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=3))
    for place in places:
        content[place] = data.draw(st.integers(0, 255))
    try:
        found = read(tmp_path_factory.mktemp("pickle"), bytes(content))
    except StudyError as error:
        assert error.where is not None
    else:
        assert all(type(key) is str for key in found)


@given(st.binary(max_size=80))
def test_any_bytes_are_refused_without_another_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    with pytest.raises(StudyError):
        read(tmp_path_factory.mktemp("pickle"), b"\x80\x02" + content + b"0")


class Reduced:
    """Pickled as a call."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __reduce__(self) -> Any:
        return self.parts


class Marked:
    """Unpickled, it would leave a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (os.system, (f"touch {self.path}",))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_command_is_not_run_and_is_named(tmp_path: Path, protocol: int) -> None:
    sign = tmp_path / "sign"
    content = pickle.dumps({"data": Marked(sign), "labels": []}, protocol)
    with pytest.raises(StudyError, match=r"byte \d+: asks for '(posix|nt).system'"):
        read(tmp_path, content)
    assert not sign.exists()
    pickle.loads(content)  # the same file, read by pickle, does run it
    assert sign.exists()


def persistent() -> bytes:
    class Pickler(pickle.Pickler):
        def persistent_id(self, value: Any) -> str | None:
            return "id" if value is GRID else None

    stream = io.BytesIO()
    Pickler(stream, 2).dump(PLAIN)
    return stream.getvalue()


DICT = b"\x80\x02}U\x01a"
NDARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
DTYPE = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R"
ARRAY = NDARRAY + b"K\x00\x85U\x01b\x87R"
HOSTILE = {
    "eval": (pickle.dumps({"a": Reduced(eval, ("1/0",))}), "asks for 'builtins.eval'"),
    "eval of Python 2": (
        DICT + b"c__builtin__\neval\nU\x011\x85Rs.",
        "asks for '__builtin__.eval'",
    ),
    "getattr": (pickle.dumps({"a": Reduced(getattr, ("a", "b"))}), "asks for 'builtins.getattr'"),
    "a part of an allowed name": (
        DICT + b"\x8c\x05numpy\x8c\x0bndarray.ctx\x93s.",
        "asks for 'numpy.ndarray.ctx'",
    ),
    "another function of numpy": (
        DICT + b"cnumpy\nfromfile\nU\x01a\x85Rs.",
        "byte 22: asks for 'numpy.fromfile'",
    ),
    "another class": (pickle.dumps({"a": OrderedDict()}), "asks for 'collections.OrderedDict'"),
    "no text as name": (DICT + b"K\x01K\x02\x93s.", "STACK_GLOBAL requires str"),
    "persistent id": (persistent(), "BINPERSID has no place"),
    "persistent text": (DICT + b"Pid\ns.", "PERSID has no place"),
    "extension": (DICT + b"\x82\x01s.", "EXT1 has no place"),
    "new object": (DICT + b"cnumpy\nndarray\n)\x81s.", "NEWOBJ has no place"),
    "instance": (DICT + b"(ios\nsystem\ns.", "INST has no place"),
    "object": (DICT + b"(cnumpy\nndarray\nos.", "OBJ has no place"),
    "buffer out of band": (DICT + b"\x97s.", "NEXT_BUFFER has no place"),
    "call of a dictionary": (DICT + b"})Rs.", "calls something"),
    "call of the array class": (DICT + b"cnumpy\nndarray\nK\x05\x85Rs.", "calls a class"),
    "call of a chosen class": (
        DICT + b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\ndtype\nK\x00\x85U\x01b\x87Rs.",
        "announces something else",
    ),
    "array of a huge shape": (
        DICT + NDARRAY + b"\x8a\x05\x00\x00\x00\x00\x7f\x85U\x01b\x87Rs.",
        "announces something else",
    ),
    "other codec": (DICT + b"c_codecs\nencode\nU\x01aU\x03hex\x86Rs.", "not written as Latin-1"),
    "no byte": (
        pickle.dumps({"a": Reduced(__import__("_codecs").encode, ("€", "latin1"))}, 2),
        "can't encode character",
    ),
    "objects": (
        pickle.dumps({"data": np.array([1, "a"], dtype=object)}, 2),
        r"an array of type 'O8'; only unsigned bytes",
    ),
    "floats": (pickle.dumps({"data": np.zeros(2)}, 2), "an array of type 'f8'"),
    "records": (
        pickle.dumps({"data": np.zeros(2, dtype=[("x", "u1")])}, 2),
        "an array of type 'V1'",
    ),
    "float": (pickle.dumps({"a": 0.5}), "BINFLOAT has no place"),
    "set": (pickle.dumps({"a": {1}}), "EMPTY_SET has no place"),
    "dtype with fields": (
        DICT + DTYPE + b"(K\x03U\x01|NN}J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbs.",
        "a type with parts",
    ),
    "array as field": (DICT + DTYPE + b"(K\x03U\x01|" + 6 * (ARRAY + b"") + b"tbs.", "with parts"),
    "state of a dictionary": (DICT + b"}}bs.", "sets the state of something else"),
    "state of a name": (DICT + b"cnumpy\ndtype\n}bs.", "sets the state of something else"),
    "dictionary as state": (DICT + ARRAY + b"}bs.", "filled twice, or with what is none"),
    "too large": (
        DICT + ARRAY + b"(K\x01\x8a\x06\x00\x00\x00\x00\x00\x7f\x85" + DTYPE + b"\x89U\x00tbs.",
        "no whole number, or too large",
    ),
    "negative": (DICT + ARRAY + b"(K\x01J\xff\xff\xff\xff\x85" + DTYPE + b"\x89U\x00tbs.", "too l"),
    "truth as size": (DICT + ARRAY + b"(K\x01\x88\x85" + DTYPE + b"\x89U\x01atbs.", "no whole"),
    "more than there is": (
        DICT + ARRAY + b"(K\x01J\x00\x00\x00\x01\x85" + DTYPE + b"\x89U\x01atbs.",
        r"shape \(16777216,\) with 1 bytes; it must have 16777216",
    ),
    "filled twice": (
        DICT + ARRAY + 2 * (b"(K\x01K\x01\x85" + DTYPE + b"\x89U\x01atb") + b"s.",
        "filled twice",
    ),
    "an array as state of one": (
        DICT + ARRAY + b"(K\x01" + ARRAY + DTYPE + b"\x89U\x01atbs.",
        "an array without a shape",
    ),
    "a list as key": (b"\x80\x02}]K\x01s.", "a key is neither text"),
    "a deep key": (
        b"\x80\x02}K\x01" + b"q\x00h\x00\x86" * 50 + b"K\x01s.",  # 2**50 leaves to hash
        "a key is neither text",
    ),
    "key of many bytes": (b"\x80\x02}T\xe8\x03\x00\x00" + b"k" * 1000 + b"K\x01s.", "too long"),
    "never stored": (b"\x80\x02h\x05.", "byte 4: .*Memo value not found"),
    "empty stack": (b"\x80\x02s.", "byte 3: .*empty list"),
    "nothing": (b"\x80\x02.", "byte 3: .*empty list"),
    "no mark": (b"\x80\x02K\x01e.", "empty list"),
    "below a mark": (b"\x80\x02}(s.", "empty list"),
    "left over": (b"\x80\x02}}.", "values are left over"),
    "append to a number": (b"\x80\x02K\x01K\x01a.", "no attribute 'append'"),
    "set in a list": (b"\x80\x02]K\x01K\x01s.", "sets what is no entry"),
    "odd entries": (b"\x80\x02}(U\x01au.", "argument 2 is shorter"),
    "a list": (pickle.dumps([1]), "what it holds is no dictionary"),
    "bytes behind": (pickle.dumps({}) + b"more", "byte 5: the pickle ends here"),
    "no pickle": (b"\xff\xd8\xff\xe0", "byte 1: .*opcode .* unknown"),
    "empty": (b"", "byte 0: .*exhausted"),
    "a length it has not": (b"\x80\x02}X\xff\xff\xff\x7fa.", "byte 10: .*but only 2 remain"),
    "a length no file has": (b"\x80\x04}\x8d" + b"\xff" * 8 + b"a.", "byte 12: .*byte count"),
    "a number of many digits": (b"}I" + b"9" * 5000 + b"\n.", "byte 5003: .*4300 digits"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles_are_refused_at_once(tmp_path: Path, name: str) -> None:
    content, message = HOSTILE[name]
    start = time.perf_counter()
    tracemalloc.start()
    with pytest.raises(StudyError, match=message):
        read(tmp_path, content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6
    assert time.perf_counter() - start < 2


def test_an_array_that_is_never_filled_is_none(tmp_path: Path) -> None:
    assert read(tmp_path, DICT + ARRAY + b"s.") == {"a": None}


def test_a_memo_of_any_number_takes_no_memory(tmp_path: Path) -> None:
    """The machine of pickle itself would make room for two thousand million entries here."""
    tracemalloc.start()
    assert read(tmp_path, b"\x80\x02}r\xff\xff\xff\x7f.") == {}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6


def test_depth_does_not_matter(tmp_path: Path) -> None:
    content = b"\x80\x02}U\x01aK\x01" + b"\x85" * 200_000 + b"s."
    found = read(tmp_path, content)["a"]
    depth = 0
    while type(found) is tuple:
        (found,) = found
        depth += 1
    assert depth == 200_000


def test_work_and_copies_are_bounded(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="more than 1048576 instructions"):
        read(tmp_path, b"\x80\x02}" + b"N" * 1_200_000 + b".")
    text = b"X" + struct.pack("<i", 1 << 20) + b"a" * (1 << 20) + b"q\x00"
    copy = b"c_codecs\nencode\nh\x00U\x06latin1\x86R"
    with pytest.raises(StudyError, match="more than 67108864 bytes are made of texts"):
        read(tmp_path, b"\x80\x02}U\x01a(" + text + copy * 100 + b"ts.")


def test_a_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpcalc.data.pickled._LARGEST", 10)
    with pytest.raises(StudyError, match="more than 10 bytes"):
        read(tmp_path, pickle.dumps(PLAIN))
