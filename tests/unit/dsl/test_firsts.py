"""What people type first: it works, or the message says what to write."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import TraceError


def made(write: Callable[..., Any]) -> tp.Program:
    """A program of two vectors, a matrix and a scalar, in which something is written."""

    @tp.program
    def own(t: Any) -> None:
        x, y, W = t.gaussian("x"), t.gaussian("y"), t.matrix("W")
        found = write(t, x, y, tp.mean(x * x), W)
        t.output("out", found if hasattr(found, "ref") else x)

    return own.build()


SAID: dict[str, tuple[Callable[..., Any], str]] = {
    "a softmax of no axis": (lambda t, x, y, s, W: tp.softmax(x), r"tp.softmax\(t.stack"),
    "a softmax of a list": (lambda t, x, y, s, W: tp.softmax([s, s]), r"tp.softmax\(t.stack"),
    "a softmax of a matrix": (lambda t, x, y, s, W: tp.softmax(W), "takes a block"),
    "a norm of a matrix": (lambda t, x, y, s, W: W.norm(), r"x.norm\(\)"),
    "a norm of tpcalc": (lambda t, x, y, s, W: tp.norm(x), r"x.norm\(\)"),
    "a norm of numpy": (lambda t, x, y, s, W: np.linalg.norm(x), r"x.norm\(\)"),
    "tanh of numpy": (lambda t, x, y, s, W: np.tanh(x), r"tp.tanh\(x\)"),
    "maximum of numpy": (lambda t, x, y, s, W: np.maximum(x, y), r"y \+ tp.relu\(x - y\)"),
    "a sum of numpy": (lambda t, x, y, s, W: np.sum(x), r"tp.n \* tp.mean\(x\)"),
    "dot of numpy": (lambda t, x, y, s, W: np.dot(W, x), "W @ x"),
    "a stack of numpy": (lambda t, x, y, s, W: np.stack([x, y]), "t.stack"),
    "an array": (lambda t, x, y, s, W: np.array([x, y]), "Python list"),
    "exp of math": (lambda t, x, y, s, W: math.exp(x), "tp.tanh, not math.tanh"),
    "a root of n": (lambda t, x, y, s, W: math.sqrt(tp.n), r"tp.n\*\*0.5"),
    "W + W.T": (lambda t, x, y, s, W: W + W.T, r"\(W @ x\) \+ \(V @ x\)"),
    "a symmetric matrix": (
        lambda t, x, y, s, W: t.matrix("S", symmetric=True),
        r"t.matrix\(\) got .*'symmetric'. .*\(W @ x \+ W.T @ x\)",
    ),
    "a trace": (lambda t, x, y, s, W: t.trace(W), r"tp.mean\(v \* \(A @ v\)\)"),
    "a uniform start": (lambda t, x, y, s, W: t.uniform("u"), "normal_cdf"),
    "a misspelt word": (lambda t, x, y, s, W: t.gausian("u"), "'gaussian'"),
    "a name that lacks": (lambda t, x, y, s, W: t.matrix(), r"t.matrix\(\) missing 1"),
    "a mean": (lambda t, x, y, s, W: x.mean(), r"tp.mean\(x\)"),
    "relu behind a dot": (lambda t, x, y, s, W: x.relu(), r"tp.relu\(x\)"),
    "a row": (lambda t, x, y, s, W: x.T @ y, r"t.inner\(x, y\)"),
    "W * x": (lambda t, x, y, s, W: W * x, "W @ x"),
    "x @ W": (lambda t, x, y, s, W: x @ W, "W.T @ x"),
    "W(x)": (lambda t, x, y, s, W: W(x), "W @ x"),
    "abs": (lambda t, x, y, s, W: abs(x), r"tp.abs\(x\)"),
    "max": (lambda t, x, y, s, W: max(x, 0), r"tp.relu\(x\)"),
    "a condition": (lambda t, x, y, s, W: x if x > 0 else y, r"tp.step\(x - y\)"),
    "a length": (lambda t, x, y, s, W: len(x), "goes to infinity"),
    "a loop": (lambda t, x, y, s, W: list(x), "infinitely many"),
    "a float": (lambda t, x, y, s, W: float(x), "tp.limit"),
    "digits": (lambda t, x, y, s, W: f"{s:.3f}", "tp.limit"),
    "a rounded number": (lambda t, x, y, s, W: round(s, 2), "tp.limit"),
    "an entry": (lambda t, x, y, s, W: x[0], "infinitely many"),
    "an entry that is set": (lambda t, x, y, s, W: x.__setitem__(0, 1), "infinitely many"),
    "a function without a name": (lambda t, x, y, s, W: tp.function(abs), "tp.function"),  # type: ignore[arg-type]
    "a quotient of whole numbers": (lambda t, x, y, s, W: x // 2, r"no //"),
}


@pytest.mark.parametrize("name", SAID)
def test_a_message_says_what_to_write(name: str) -> None:
    write, said = SAID[name]
    with pytest.raises(TraceError, match=said) as caught:
        made(write)
    line = write.__code__.co_firstlineno
    assert caught.value.where in {f"test_firsts.py:{line}", f"test_firsts.py:{line + 1}"}
    assert len(str(caught.value)) <= 200


@pytest.mark.torch
@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda torch, x, W: torch.relu(x), r"tp.relu\(x\)"),
        (lambda torch, x, W: torch.nn.functional.relu(x), r"tp.relu\(x\)"),
        (lambda torch, x, W: torch.nn.GELU()(x), r"tp.gelu\(x\)"),
        (lambda torch, x, W: torch.matmul(W, x), "W @ x"),
        (lambda torch, x, W: torch.stack([x, x]), "t.stack"),
        (lambda torch, x, W: torch.ones(3) * x, "an array of shape"),
    ],
)
def test_functions_of_torch_are_told_from_ours(write: Callable[..., Any], said: str) -> None:
    import torch

    with pytest.raises(TraceError, match=said):
        made(lambda t, x, y, s, W: write(torch, x, W))
    assert made(lambda t, x, y, s, W: torch.tensor(2.0) * x) == made(lambda t, x, y, s, W: 2.0 * x)


SAME: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "a root": (lambda t, x, y, s, W: s.sqrt(), lambda t, x, y, s, W: s ** "1/2"),
    "roots": (lambda t, x, y, s, W: x.sqrt(), lambda t, x, y, s, W: x**0.5),
    "a norm": (
        lambda t, x, y, s, W: x.norm(),
        lambda t, x, y, s, W: tp.n**0.5 * t.inner(x, x) ** 0.5,
    ),
    "texts": (
        lambda t, x, y, s, W: t.gaussian("z", mean="1/3", var="1/4"),
        lambda t, x, y, s, W: t.gaussian("z", mean=Fraction(1, 3), var=Fraction(1, 4)),
    ),
    "softmax of the only axis": (
        lambda t, x, y, s, W: tp.softmax(t.stack([s, s * 2], "k")),
        lambda t, x, y, s, W: tp.softmax(t.stack([s, s * 2], "k"), along="k"),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_what_works_by_itself(name: str) -> None:
    short, long = SAME[name]
    assert made(short) == made(long)


def test_a_norm_is_of_all_coordinates() -> None:
    @tp.program
    def own(t: Any) -> None:
        x = t.gaussian("x", dim=t.dim("m", 4))
        t.output("norm", tp.n**-0.5 * x.norm())
        t.output("unit", tp.n**0.5 * (x / x.norm()))

    found = tp.limit(own)
    assert found["norm"].value == 2 and found["unit"].second_moment.value == 0.25


def test_functions_of_numpy_have_kernels() -> None:
    X = np.random.default_rng(0).normal(size=(3, 2))
    own, known = (
        tp.kernel(tp.MLP(2, act), X, kinds="nngp").nngp
        for act in (tp.function("f", np.tanh), "tanh")
    )
    assert own is not None and known is not None
    np.testing.assert_allclose(own, known, rtol=1e-13)


def test_attributes_that_are_not_there_are_asked_for_safely() -> None:
    @tp.program
    def own(t: Any) -> None:
        x = t.gaussian("x")
        assert not hasattr(x, "mean") and getattr(t, "trace", None) is None
        t.output("x", x)

    assert len(own.nodes) == 1 and not hasattr(tp, "norm")
