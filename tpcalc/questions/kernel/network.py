"""An architecture with the inputs that its kernels are of."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.exponents import Ex
from tpcalc.networks.network import Architecture, features
from tpcalc.passes.starts import started_at_zero
from tpcalc.passes.tangent import tangent_of_network
from tpcalc.passes.template import Template
from tpcalc.program.family import Mark
from tpcalc.program.program import Program
from tpcalc.questions.kernel.entries import Entries
from tpcalc.questions.kernel.tiles import Inputs
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.written import template_of

LARGE = 1e75  # numbers whose fourth powers are still floats


@dataclass(frozen=True)
class Network:
    """An architecture with inputs.

    Args:
        architecture: The network.
        exponents: Its parameterization.
        left: The inputs of the rows.
        right: Those of the columns; None: the same.
        layers: The layers that are trained; None: all.
        kinds: Of ``"nngp"``, ``"ntk"``.
    """

    architecture: Architecture
    exponents: Parameterization
    left: Inputs
    right: Inputs | None
    layers: frozenset[int] | None
    kinds: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Of the forward program of one input."""
        if isinstance(self.architecture, Hashable):
            return _digest(self.architecture, self.exponents)
        return _started(self.architecture, self.exponents).digest

    @cached_property
    def pair(self) -> Entries:
        """The tangent program of two inputs."""
        return self.entries(2)

    @cached_property
    def single(self) -> Entries:
        """That of one input."""
        return self.entries(1)

    def entries(self, copies: int) -> Entries:
        """The tangent program of some inputs."""
        table = self.exponents.exponents(self.architecture.hidden, 0)

        def rate(mark: Mark) -> tuple[Fraction | float, Ex]:
            return mark.rate, self.exponents.rate(mark, table)

        def trained(mark: Mark) -> bool:
            return self.layers is None or mark.layer in self.layers

        template = _template(self.architecture, self.exponents)
        return Entries(tangent_of_network(template, copies, rate, trained, self.kinds))


def _template(architecture: Architecture, exponents: Parameterization) -> Template:
    """The network with one feature for each token."""
    return template_of(architecture, exponents, architecture.tokens, 1)


@lru_cache(maxsize=64)
def _digest(architecture: Architecture, exponents: Parameterization) -> str:
    """Of the forward program: printing it takes as long as a small kernel."""
    return _started(architecture, exponents).digest


def _started(architecture: Architecture, exponents: Parameterization) -> Program:
    template = _template(architecture, exponents)
    return started_at_zero(template.program, template.zeros)


def network(
    architecture: Architecture,
    X: Any,
    X2: Any,
    exponents: Parameterization,
    layers: Sequence[int] | None,
    scale: float | None,
    kinds: Sequence[str],
) -> Network:
    """Check the inputs of a network and split them into tokens.

    Args:
        architecture: The network.
        X: Inputs, of shape (N, d).
        X2: Inputs of the columns, or None.
        exponents: The parameterization.
        layers: The layers that are trained, or None.
        scale: The factor of inner products, or None.
        kinds: Of ``"nngp"``, ``"ntk"``.

    Raises:
        UsageError: They do not fit.
    """
    if X is None:
        raise UsageError(
            "an architecture has a kernel on inputs; X is not given.",
            hint="Give an array of shape (N, d), one row for each input.",
        )
    left = checks.inputs(X, "X")
    right = None if X2 is None else checks.inputs(X2, "X2", left.shape[1])
    size = features(architecture, left.shape[1])
    factor = 1.0 / size if scale is None else float(checks.real(scale, "scale", above=0))
    for name, rows in (("X", left), ("X2", right)):
        if rows is not None:
            _check_range(rows, factor, name)

    def split(rows: Array) -> Inputs:
        return Inputs(rows.reshape(len(rows), -1, size), factor)

    return Network(
        architecture,
        exponents,
        split(left),
        None if right is None else split(right),
        None if layers is None else _layers(layers, architecture.hidden + 1),
        tuple(kinds),
    )


def _check_range(rows: Array, factor: float, name: str) -> None:
    """Inner products of inputs must be numbers whose squares are."""
    sizes = np.abs(rows).max(axis=1, initial=0.0)
    outside = (sizes > 0) & ((sizes > LARGE) | (sizes * factor**0.5 < 1 / LARGE))
    if np.any(outside):
        row = int(np.argmax(outside))
        raise EvaluationError(
            f"row {row} of {name} has numbers of size {sizes[row]:.1e}: its inner products leave "
            "the range of float64.",
            hint="Scale the inputs, or give scale=.",
        )


def _layers(layers: Any, last: int) -> frozenset[int]:
    given, hint = (
        checks.sequence(layers, "layers"),
        f"There are layers 1 to {last}, with the readout.",
    )
    return frozenset(checks.whole(one, "a layer", least=1, most=last, hint=hint) for one in given)
