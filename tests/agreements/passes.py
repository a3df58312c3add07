"""Random programs of the kind that a first pass through a network is."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import tpcalc as tp
from tpcalc.functions import Expr

__all__ = ["first_pass"]

Activation = Callable[[Expr], Expr]

HALF = Fraction(1, 2)
ACTS: tuple[Activation, ...] = (
    tp.relu,
    tp.tanh,
    tp.erf,
    tp.gelu,
    tp.abs,
    tp.step,
    tp.sign,
    tp.sin,
    tp.cos,
    tp.gaussian,
    tp.elu(1),
    tp.selu,
    tp.softplus,
    tp.swish,
    tp.sigmoid,
    tp.normal_cdf,
    tp.normal_pdf,
    tp.leaky_relu(Fraction(1, 5)),
    tp.relu_pow(2),
    tp.identity,
    lambda z: (z**2 - 1) / 2,
    lambda z: (z**3 - 3 * z) / 3,
    lambda z: tp.exp(z / 2 - 1),
    lambda z: tp.exp(-(z**2)),
    lambda z: z * tp.sigmoid(2 * z) + HALF,
)


class _Pass:
    """One random program while it is written."""

    def __init__(self, t: tp.Tracer, rng: np.random.Generator) -> None:
        self.t, self.rng = t, rng
        self.dims = {"n": 1.0, t.dim("m", Fraction(int(rng.integers(1, 5)), 2)): 1.0}
        self.count = 0
        self.matrices: list[tuple[tp.dsl.Matrix, str, str]] = []

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def pick(self, items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def act(self) -> Activation:
        found: Activation = self.pick(ACTS)
        return found

    def start(self, dim: str) -> list[Any]:
        """One to three start vectors, correlated, some with means, some linearly dependent."""
        size = int(self.rng.integers(1, 4))
        factor = self.rng.integers(-2, 3, (size, size)) / 4 + 0.75 * np.eye(size)
        if size == 3 and self.rng.random() < 0.3:
            factor[2] = factor[0] + factor[1]
        mean = self.rng.integers(-1, 2, size) / 2 if self.rng.random() < 0.5 else np.zeros(size)
        names = [self.name("g") for _ in range(size)]
        return self.t.gaussians(names, mean.tolist(), (factor @ factor.T).tolist(), dim)

    def times(self, x: Any, dim: str, other: str) -> Any:
        """A product with a new matrix, or with one that was used: as it is, or transposed."""
        usable = [
            (matrix if (rows, cols) == (other, dim) else matrix.T)
            for matrix, rows, cols in self.matrices
            if (rows, cols) in ((other, dim), (dim, other))
        ]
        both = [m.T for m, rows, cols in self.matrices if rows == cols == dim == other]
        if usable and self.rng.random() < 0.45:
            matrix = self.pick(usable + both)
        else:
            matrix = self.t.matrix(self.name("W"), other, dim)
            self.matrices.append((matrix, other, dim))
        return tp.n**-HALF * (matrix @ x)

    def normalised(self, x: Any) -> Any:
        centred = x - tp.mean(x)
        return centred * (tp.mean(centred**2) + Fraction(1, 10)) ** -HALF


def first_pass(seed: int) -> tp.Program:
    """A program of two to four layers, its outputs scalars, vectors and random scalars."""
    rng = np.random.default_rng(seed)

    @tp.program
    def passes(t: tp.Tracer) -> None:
        own = _Pass(t, rng)
        vectors = {dim: own.start(dim) for dim in own.dims}
        dim = "n"
        for layer in range(int(rng.integers(2, 5))):
            other = own.pick(("n", "n", "m"))
            x = own.pick(vectors[dim])
            h = own.times(own.act()(x), dim, other)
            if rng.random() < 0.5:
                h = h + HALF * own.pick(vectors[other])
            if rng.random() < 0.25:
                h = own.normalised(h)
            if rng.random() < 0.2:
                h = h * (1 + tp.mean(own.act()(own.pick(vectors[dim]))) ** 2)
            if rng.random() < 0.25:
                h = own.act()(h)
            vectors[other].append(h)
            dim = other
            y = own.pick(vectors[dim])
            t.output(f"pooled[{layer}]", tp.mean(own.act()(h)))
            t.output(f"inner[{layer}]", t.inner(own.act()(h), own.act()(y)))
        t.output("vector", own.act()(vectors[dim][-1]))
        t.output("two", own.act()(vectors[dim][-1]) * own.pick(vectors[dim]))
        readout = t.gaussian("v", dim)
        f = tp.n**HALF * t.inner(readout, own.act()(vectors[dim][-1]))
        t.output("f", f)
        t.output("shifted", 2 * f + t.random_scalar("b", mean=HALF, std=2))

    return passes.build()
