"""Entries of kernels: a tangent program evaluated for arrays of inner products of inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.evaluate.closure.chance import Chance
from tpcalc.evaluate.closure.closure import Closure
from tpcalc.evaluate.settle import Witness
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.numeric import Numeric
from tpcalc.limit.derive import derive
from tpcalc.limit.graph import LimitGraph, LRef
from tpcalc.names import cell_name
from tpcalc.passes.tangent import TangentProgram
from tpcalc.results import Method

Covariances = Sequence[Sequence[Bounded]]


@dataclass(frozen=True)
class Inputs:
    """Inputs of a network, token by token.

    Example:
        >>> Inputs(np.ones((2, 1, 3)), 1 / 3).squares.tolist()
        [[[1.0]], [[1.0]]]
    """

    rows: Array  # of shape (N, T, d)
    scale: float  # the factor of inner products at the first layer

    @property
    def squares(self) -> Array:
        """Inner products of the tokens of one input, of shape (N, T, T)."""
        found: Array = self.scale * np.einsum("npd,nqd->npq", self.rows, self.rows)
        return found

    def products(self, other: Inputs) -> Array:
        """Inner products of tokens of two sets of inputs, of shape (T, T, N, M)."""
        count, tokens, size = self.rows.shape
        flat = self.rows.reshape(-1, size) @ other.rows.reshape(-1, size).T
        split = flat.reshape(count, tokens, len(other.rows), tokens)
        return self.scale * split.transpose(1, 3, 0, 2)

    def gram(self, rounding: float = 0.0) -> list[list[Bounded]]:
        """Inner products of the tokens of one input, each of shape (N,), with relative errors."""
        squares, tokens = self.squares, range(self.rows.shape[1])
        rows = [[squares[:, p, q] for q in tokens] for p in tokens]
        return [[Bounded(one, rounding * np.abs(one)) for one in row] for row in rows]

    def at(self, places: Any) -> Inputs:
        """Some of the inputs."""
        return Inputs(self.rows[places], self.scale)


@dataclass(frozen=True)
class Entries:
    """The limit of a tangent program, to be evaluated for any inner products of inputs.

    Args:
        tangent: The program.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> from tpcalc.training.parameterizations import lookup
        >>> from tpcalc.training.written import template_of
        >>> from tpcalc.exponents import as_ex
        >>> from tpcalc.passes.tangent import tangent_of_network
        >>> template = template_of(MLP(1, "relu"), lookup("ntk"), 1, 1)
        >>> one_rate = lambda mark: (1, as_ex(0))
        >>> program = tangent_of_network(template, 1, one_rate, lambda mark: True)
        >>> one = Numeric().number(1)
        >>> Entries(program).at([[one]]).nngp(0, 0, 0, 0).value
        0.5
    """

    tangent: TangentProgram

    @cached_property
    def graph(self) -> LimitGraph:
        """Its limit graph."""
        return derive(self.tangent.program, trial=Witness(0).claims)

    @cached_property
    def nodes(self) -> dict[str, LRef | None]:
        """The node of each output; None where it is 0 in the limit."""
        return {name: target.node for name, target in self.graph.targets}

    def at(
        self, gram: Covariances | None, field: Numeric | None = None, *, corrections: bool = True
    ) -> Evaluated:
        """The entries for some inputs.

        Args:
            gram: Inner products of the data vectors of all copies; None: those of the program.
            field: How integrals are evaluated.
            corrections: As of ``Closure``.
        """
        given = {} if gram is None else dict.fromkeys(self.tangent.groups, gram)
        closure = Closure(self.graph, field or Numeric(), given, corrections=corrections)
        return Evaluated(self, closure)


class Evaluated:
    """Kernel entries at given inputs."""

    def __init__(self, entries: Entries, closure: Closure[Bounded]) -> None:
        self.entries, self.closure = entries, closure
        self.chance = Chance(closure)

    def entry(self, kind: str, i: int, k: int, j: int, m: int) -> Bounded:
        """An entry of a kernel; what overflows is not finite, without a warning."""
        with np.errstate(all="ignore"):
            return (self.nngp if kind == "nngp" else self.ntk)(i, k, j, m)

    def nngp(self, i: int, k: int, j: int, m: int) -> Bounded:
        """The covariance of output k for copy i and output m for copy j."""
        left, right = (self.entries.nodes[cell_name("f", at)] for at in ((i, k), (j, m)))
        if left is None or right is None:
            return self.closure.field.number(0)
        return self.chance.covariance(left, right)

    def ntk(self, i: int, k: int, j: int, m: int) -> Bounded:
        """The tangent kernel between output k for copy i and output m for copy j, i <= j."""
        terms = [[*factors, self._scalar(name)] for name, factors in self.parts(i, k, j, m)]
        return self.closure.field.total(terms)

    def parts(self, i: int, k: int, j: int, m: int) -> Iterator[tuple[str, list[Bounded]]]:
        """The outputs of the program that an entry of the tangent kernel is the sum of."""
        place = (i, k, j, m)
        yield cell_name("ntk", place), []
        tokens = range(self.entries.tangent.tokens)
        for p in tokens:
            for q in tokens:
                name = cell_name("data", (p, q, *place))
                if name in self.entries.nodes:
                    yield name, [self._gram(i * len(tokens) + p, j * len(tokens) + q)]

    def _gram(self, p: int, q: int) -> Bounded:
        given: Any = self.closure.covariances[min(self.entries.tangent.groups)]
        found: Bounded = given[p][q]
        return found

    def _scalar(self, name: str) -> Bounded:
        ref = self.entries.nodes[name]
        if ref is None:
            return self.closure.field.number(0)
        if ref in self.chance.random:
            raise Unknown(f"{name} is random in the limit")
        return self.closure.scalar(ref)


@dataclass(frozen=True)
class Found:
    """A kernel with how it was found.

    Example:
        >>> Found({}, Method.EXACT, 0.0).notes
        ()
    """

    matrices: dict[str, Array]  # for each kind the matrix, of shape (N, M) or (N, K, M, K)
    method: Method  # the least certain method of an entry
    error: float  # the largest error, in units of sqrt(K_ii K_jj)
    # that of different inputs that nearly coincide; None if not told apart
    coincident: float | None = None
    independent: bool | None = None  # whether gradient independence holds
    notes: tuple[str, ...] = ()  # for the reader
    settings: dict[str, str] = field(default_factory=dict)  # what else the numbers depend on
    followed: bool = True  # whether errors are those of covariances as well

    @property
    def worst(self) -> float:
        """The largest error of all entries."""
        return max(self.error, self.coincident or 0.0)
