"""Laws of the entries of random matrices: a row for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

from tpcalc.functions.numbers import Number
from tpcalc.sources import Source


@dataclass(frozen=True, slots=True)
class Law:
    """A law of matrices with entries of mean 0 and variance 1, symmetric about 0.

    Limits and orders of programs use the variance and the symmetry alone, and hold for entries with
    all moments; networks of finite width draw the law.
    """

    name: str  # its name in programs
    text: str  # what it is, in one line
    # draw(generator, shape): independent entries; None where they depend on each other
    draw: Callable[[Any, tuple[int, ...]], Any] | None
    fourth: Number  # the fourth moment of an entry in a wide matrix
    # the least s with E exp(c X) at most exp(c^2 s^2 / 2) for all c; None: there is none
    proxy: float | None
    source: Source  # where it is used


def _uniform(generator: Any, shape: tuple[int, ...]) -> Any:
    return generator.uniform(-sqrt(3), sqrt(3), shape)


def _rademacher(generator: Any, shape: tuple[int, ...]) -> Any:
    return 2.0 * generator.integers(0, 2, shape) - 1.0


def _laplace(generator: Any, shape: tuple[int, ...]) -> Any:
    return generator.laplace(0.0, sqrt(0.5), shape)


SCALING = Source("Marion, Fermanian, Biau, Vert, Scaling ResNets", "Assumption A1", "2206.06929")
ROWS = (
    Law(
        "gaussian",
        "independent N(0, 1) entries",
        lambda generator, shape: generator.standard_normal(shape),
        3,
        1.0,
        Source("Yang, Tensor Programs II", "Definition 2.1", "2006.14548"),
    ),
    Law(
        "orthogonal",
        "columns (rows, if there are fewer) of a Haar orthogonal matrix, of mean square 1",
        None,
        3,
        1.0,
        Source("Mezzadri, How to generate random matrices", "section 5", "math-ph/0609050"),
    ),
    Law("uniform", "independent entries, uniform in |x| < sqrt(3)", _uniform, 1.8, 1.0, SCALING),
    Law("rademacher", "independent entries 1 or -1", _rademacher, 1, 1.0, SCALING),
    Law(
        "laplace",
        "independent entries of the density exp(-sqrt(2) |x|) / sqrt(2), with heavier tails",
        _laplace,
        6,
        None,
        Source("Golikov, Yang, Non-Gaussian Tensor Programs", "Theorem 1"),
    ),
)
LAWS = {law.name: law for law in ROWS}
