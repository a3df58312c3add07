"""``Kernel``: what it takes, what it finds, and its file."""

from __future__ import annotations

import io
import json
import math
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden.kernels import BETWEEN, KERNEL, SAMPLED, SEVERAL
from hypothesis import given, settings
from hypothesis import strategies as st

from tpcalc import checks
from tpcalc.errors import EvaluationError, StudyError, TpcalcError, UnknownName, UsageError
from tpcalc.results import Kernel, Method, load_kernel
from tpcalc.results.codec import from_json, to_json
from tpcalc.results.estimate import rounded_up


def made(nngp: Any, ntk: Any = None, **changes: Any) -> Kernel:
    plain = replace(KERNEL, labels=(), nngp=np.eye(2), ntk=None)
    return replace(plain, nngp=nngp, ntk=ntk, **changes)


def low_rank(size: int, rank: int, seed: int) -> np.ndarray[Any, Any]:
    factor = np.random.default_rng(seed).standard_normal((size, rank))
    return factor @ factor.T


def test_what_it_is_of() -> None:
    assert KERNEL.kinds == ("nngp", "ntk") and BETWEEN.kinds == ("nngp",)
    assert (KERNEL.shape, BETWEEN.shape, SEVERAL.shape) == ((8, 8), (3, 5), (3, 3))
    assert (KERNEL.outputs("ntk"), SEVERAL.outputs("nngp")) == (1, 2)
    flat = SEVERAL.matrix("nngp")
    assert flat.shape == (6, 6) and flat[0, 1] == 1.25 and flat[2, 5] == 0.75


def test_how_it_prints() -> None:
    assert repr(KERNEL) == (
        "NNGP and NTK of 8 x 8, exact, error <= 3.3e-15, 4e-13 between nearly coincident inputs"
    )
    assert repr(SAMPLED) == "NNGP and NTK of 8 x 8, particles, standard error 2e-3"
    assert repr(SEVERAL) == "NNGP of 3 x 3, 2 outputs, exact, error 0"


def test_arrays_are_float64_and_cannot_be_changed() -> None:
    for given_type, kept_type in ((int, "f8"), (np.float16, "f8"), (np.float32, "f4")):
        found = made(np.ones((2, 3), dtype=given_type), symmetric=False).nngp
        assert found is not None and found.dtype == kept_type
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 2.0
    own = np.eye(2)
    kept = made(own)
    assert np.shares_memory(own, kept.nngp) and own.flags.writeable  # no copy, no side effect


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nngp": None}, "neither is given"),
        ({"nngp": np.ones(3)}, r"the NNGP has shape \(3,\)"),
        ({"nngp": np.ones((2, 0))}, "not empty"),
        ({"nngp": np.ones((2, 3, 2, 4))}, r"shape \(2, 3, 2, 4\)"),
        ({"ntk": np.eye(3)}, "NNGP and NTK are of different inputs"),
        ({"nngp": np.ones((2, 3))}, "a kernel of 2 x 3 inputs cannot be symmetric"),
        ({"labels": ("a",)}, "1 labels for 2 rows"),
        ({"error": -1.0}, "error is -1.0"),
        ({"error": math.nan}, "error is nan"),
        ({"coincident_error": -1.0}, "coincident_error is -1.0"),
    ],
)
def test_what_does_not_fit(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        made(**{"nngp": np.eye(2), **arguments})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_entries_are_finite(value: float) -> None:
    matrix = np.eye(3)
    matrix[2, 1] = value
    with pytest.raises(EvaluationError, match=f"entry 2, 1 of the NNGP is {value}"):
        made(matrix)


def test_a_sum_beyond_the_range_is_no_error() -> None:
    assert made(np.full((2, 2), 1.5e308)).shape == (2, 2)


def test_eigenvalues_of_a_product() -> None:
    # Eigenvalues of a Kronecker product are the products of the eigenvalues.
    outer = made(SEVERAL.matrix("nngp")[::2, ::2] / 2).spectrum("nngp")
    expected = np.sort(np.outer(outer, [3.0, 1.0]).ravel())[::-1]
    assert SEVERAL.spectrum("nngp") == pytest.approx(expected, rel=1e-12)


@given(st.integers(1, 6), st.integers(0, 2**32), st.floats(0, 1e-4))
@settings(max_examples=40, deadline=None)
def test_resolution_bounds_what_an_error_does(size: int, seed: int, error: float) -> None:
    noise = np.random.default_rng(seed).uniform(-1, 1, (size, size))
    truth = low_rank(size, size + 1, seed)
    norms = np.sqrt(np.diagonal(truth))
    # The error is in units of the found diagonal, which is itself off.
    moved = truth + 0.99 * error * np.outer(norms, norms) * (noise + noise.T) / 2
    found = made(moved, error=error, coincident_error=None)
    gap = abs(found.spectrum("nngp") - made(truth).spectrum("nngp")).max()
    assert gap <= found.resolution("nngp")
    low, high = found.effective_rank_range("nngp")
    assert low <= made(truth).effective_rank("nngp") <= high


def test_resolution_of_samples_is_wider() -> None:
    exact = replace(SAMPLED, method=Method.EXACT)
    assert SAMPLED.resolution("ntk") == pytest.approx(3 * exact.resolution("ntk"), rel=1e-6)
    near = replace(exact, coincident_error=0.004)
    assert near.resolution("ntk") == pytest.approx(2 * exact.resolution("ntk"), rel=1e-6)


def test_effective_rank() -> None:
    assert made(np.eye(5)).effective_rank("nngp") == pytest.approx(5)
    assert made(np.ones((5, 5))).effective_rank("nngp") == pytest.approx(1)
    shares = np.array([0.5, 0.3, 0.2])
    entropy = -(shares * np.log(shares)).sum()
    assert made(np.diag(7 * shares)).effective_rank("nngp") == pytest.approx(math.exp(entropy))
    low, high = replace(KERNEL, error=0.5).effective_rank_range("ntk")
    assert (low, high) == (1.0, 8.0)  # such an error leaves everything open
    assert made(np.ones((1, 1))).effective_rank_range("nngp") == (1.0, 1.0)


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda: KERNEL.spectrum("nkt"), UnknownName, "no kernel called 'nkt'.*'ntk'"),
        (lambda: SEVERAL.spectrum("ntk"), UsageError, r"NTK was not computed.*kinds=\('ntk',\)"),
        (lambda: BETWEEN.spectrum("nngp"), UsageError, "3 x 5 different inputs has no eigenvalues"),
        (lambda: BETWEEN.resolution("nngp"), UsageError, "Leave out X2"),
        (lambda: made(np.zeros((2, 2))).effective_rank("nngp"), EvaluationError, "NNGP is 0"),
        (
            lambda: made(np.array([[1.0, 0.5], [0.4, 1.0]])).spectrum("nngp"),
            EvaluationError,
            "differs from its transpose by 1.0e-01",
        ),
    ],
)
def test_what_cannot_be_asked(ask: Any, error: type[TpcalcError], message: str) -> None:
    with pytest.raises(error, match=message):
        ask()


def test_asymmetry_within_the_error_is_allowed() -> None:
    matrix = np.array([[1.0, 0.5], [0.501, 1.0]])
    assert made(matrix, error=1e-3).spectrum("nngp")[0] == pytest.approx(1.5, abs=2e-3)


@given(st.floats(1e-300, 1e300))
def test_bounds_are_rounded_up(value: float) -> None:
    text = rounded_up(value)
    assert value <= float(text) <= 1.11 * value
    assert len(text.partition("e")[0]) <= 3


def same(one: Kernel, other: Kernel) -> bool:
    plain = (
        "method",
        "error",
        "coincident_error",
        "independent",
        "notes",
        "symmetric",
        "model",
        "provenance",
        "labels",
    )
    arrays = [(getattr(one, kind), getattr(other, kind)) for kind in ("nngp", "ntk")]
    return all(getattr(one, name) == getattr(other, name) for name in plain) and all(
        (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))
        for a, b in arrays
    )


@pytest.mark.parametrize(
    "kernel", [KERNEL, SAMPLED, BETWEEN, SEVERAL, replace(KERNEL, error=math.inf)]
)
def test_files(tmp_path: Path, kernel: Kernel) -> None:
    path = tmp_path / "kernel.npz"
    assert kernel.save(path) == path
    assert same(load_kernel(path), kernel) and same(Kernel.load(str(path)), kernel)
    assert [entry.name for entry in tmp_path.iterdir()] == ["kernel.npz"]  # nothing is left beside
    kernel.save(path)  # over itself
    with np.load(path, allow_pickle=False) as found:
        assert "kernel" in found.files and set(kernel.kinds) <= set(found.files)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link.npz"
    link.symlink_to(tmp_path / "real.npz")
    KERNEL.save(link)
    assert link.is_symlink() and same(load_kernel(tmp_path / "real.npz"), KERNEL)


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"written as \.npz, not as '\.txt'.*Call it k\.npz"):
        KERNEL.save(tmp_path / "k.txt")
    with pytest.raises(StudyError, match="cannot be written: there is no folder"):
        KERNEL.save(tmp_path / "none" / "k.npz")
    folder = tmp_path / "folder.npz"
    folder.mkdir()
    with pytest.raises(StudyError, match="cannot be written: it is a folder"):
        KERNEL.save(folder)
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder.npz"]


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = KERNEL.save(tmp_path / "k.npz")
    before = path.read_bytes()

    def full(file: io.BufferedWriter, **arrays: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(StudyError, match="No space left on device"):
        SAMPLED.save(path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def rewritten(path: Path, **changes: Any) -> None:
    """The file with other things in its description, or other arrays (None takes one away)."""
    KERNEL.save(path)
    with np.load(path) as found:
        arrays = {name: found[name] for name in found.files}
    text = json.loads(str(arrays["kernel"]))
    for name, value in changes.items():
        if name in ("nngp", "ntk", "kernel"):
            arrays[name] = value
        elif value is None:
            del text[name]
        else:
            text[name] = value
    if "kernel" not in changes:
        arrays["kernel"] = np.array(json.dumps(text))
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 2}, "has version 2; this release reads version 1"),
        ({"schema": None}, "has version None"),
        ({"error": None}, "lacks 'error'"),
        ({"error": "wide"}, "could not convert"),
        ({"error": "-1"}, "error is -1.0"),
        ({"method": "guess"}, "'guess' is not a valid Method"),
        ({"independent": "yes"}, "'yes' is no answer"),
        ({"symmetric": "no"}, "'no' is no answer"),
        ({"notes": [1]}, "list of names"),
        ({"provenance": {}}, "no schema version"),
        ({"provenance": to_json(KERNEL.provenance) | {"type": "Formula"}}, "Formula"),
        ({"ntk": None}, "a matrix is missing"),
        ({"ntk": np.eye(3)}, "different inputs"),
        ({"ntk": np.eye(8, dtype=np.float16)}, "NTK is of float16, not of float64"),
        ({"ntk": np.full((8, 8), np.nan)}, "entry 0, 0 of the NTK is nan"),
        ({"kernel": None}, "it has no description"),
        ({"kernel": np.array(1.0)}, "it has no description"),
        ({"kernel": np.array("{")}, "not a JSON file"),
        ({"kernel": np.array("[1]")}, "has version None"),
        ({"ntk": np.array([None, {}])}, "damaged"),
    ],
)
def test_files_that_hold_no_kernel(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tmp_path / "k.npz"
    rewritten(path, **changes)
    with pytest.raises(StudyError, match=message) as caught:
        load_kernel(path)
    assert str(path) in str(caught.value.where)


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="there is no such file"):
        load_kernel(tmp_path / "none.npz")
    with pytest.raises(StudyError, match="this is a folder"):
        load_kernel(tmp_path)
    text = tmp_path / "text.npz"
    text.write_text("1,2,3")
    with pytest.raises(StudyError, match="no kernel that can be read"):
        load_kernel(text)
    array = tmp_path / "array.npy"
    np.save(array, np.eye(2))
    with pytest.raises(StudyError, match="no kernel that can be read"):
        load_kernel(array)
    with pytest.raises(UsageError, match="must be the path of a file"):
        load_kernel(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated_files(tmp_path: Path, share: float) -> None:
    path = KERNEL.save(tmp_path / "k.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(StudyError, match="no kernel that can be read, or it is damaged"):
        load_kernel(path)


def test_flipped_bits_are_noticed(tmp_path: Path) -> None:
    path = KERNEL.save(tmp_path / "k.npz")
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("ntk.npy").header_offset
    data[start + 400] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(StudyError, match="damaged"):
        load_kernel(path)


def test_it_has_no_json() -> None:
    with pytest.raises(StudyError, match="Write it with its method save"):
        to_json(KERNEL)
    with pytest.raises(UnknownName):
        from_json({"schema": 1, "type": "Kernel"})


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([1.0, 2.0], UsageError, r"X has shape \(2,\).*X\[None, :\]"),
        ([[[1.0]]], UsageError, r"X has shape \(1, 1, 1\)"),
        (np.ones((0, 3)), UsageError, r"shape \(0, 3\)"),
        ([[1.0], [1.0, 2.0]], UsageError, "rows of different lengths"),
        ([["a"]], UsageError, "must hold real numbers"),
        ([[1j]], UsageError, "X holds complex128 entries"),
        ([[None]], UsageError, "X holds object entries"),
        (3.0, UsageError, r"X has shape \(\)"),
        ([[1.0, math.nan]], StudyError, "row 0, column 1 is nan"),
        ([[1.0], [math.inf]], StudyError, "row 1, column 0 is inf"),
        ([[1.0, 2.0]], UsageError, "have 2 features; 3 are needed"),
        (KERNEL, UsageError, "must hold real numbers"),
    ],
)
def test_inputs_that_cannot_be_used(value: Any, error: type[TpcalcError], message: str) -> None:
    with pytest.raises(error, match=message):
        checks.inputs(value, "X", 3)


def test_inputs() -> None:
    found = checks.inputs([[1, 2, 3], [4, 5, 6]], "X", 3)
    assert found.dtype == np.float64 and found.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert checks.inputs(np.asfortranarray(np.eye(3)), "X").flags.c_contiguous
    from tpcalc.results import Samples

    with pytest.raises(UsageError, match=r"X=data\.inputs"):
        checks.inputs(Samples([[1.0]], [1.0]), "X")  # type: ignore[arg-type]
