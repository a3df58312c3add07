"""What ``limit`` answers: results by name, and further questions about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.dsl.elementwise import expression
from tpcalc.errors import UnknownName, UsageError
from tpcalc.evaluate.chain import ZERO, Chain, chosen, together
from tpcalc.evaluate.numbers import numbers
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.evaluate.particles.estimate import Budget, collect, paired, run_particles
from tpcalc.evaluate.wanted import Place, places
from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Expr, Fn, Var
from tpcalc.limit.cells import cells_below
from tpcalc.limit.express import express
from tpcalc.limit.graph import LimitGraph
from tpcalc.names import COMMA, Name
from tpcalc.passes.as_blocks import is_read_as_blocks
from tpcalc.passes.sums import picked
from tpcalc.program.nodes import Moment, Ref, Scale
from tpcalc.program.program import Builder, Program, matching
from tpcalc.program.types import ReadAs
from tpcalc.results import PLAIN, Estimate, Exponent, Formula, LimitTable, VectorRow
from tpcalc.shown import Shown


@dataclass(eq=False, repr=False)
class Limit(Shown):
    """The limit of a program; ``tp.limit`` makes it.

    ``limit[name]`` is an ``Estimate`` for a scalar output, a ``LimitVector`` for a vector output.

    Args:
        program: The program, with the outputs that were asked for.
        graph: Its limit graph.
        budget: What the numbers were computed with.
        table: All of it as a plain record.
        ask: The limit of other outputs of the program, found in the same way.
        values: Numbers for symbols in exponents.
        method: What evaluates expectations.
        given: Values of random scalars.
        reading: How questions about cells are read, as for ``tp.limit``.

    Example:
        >>> import tpcalc as tp
        >>> @tp.program
        ... def start(t):
        ...     v = t.gaussian("v")
        ...     t.output("square", t.inner(v, v))
        >>> print(tp.limit(start)["square"])
        1 (exact)
    """

    program: Program
    graph: LimitGraph
    budget: Budget
    table: LimitTable
    ask: Callable[[Program], Limit]
    values: Mapping[str, Fraction] | None = None
    method: str = "auto"
    given: Mapping[str, float] | None = None
    reading: ReadAs = "auto"

    def __post_init__(self) -> None:
        self._scalars = {row.name: row for row in self.table.scalars}
        self._vectors = {row.name: row for row in self.table.vectors}
        self._uncovered = {row.name: row for row in self.table.uncovered}

    def __getitem__(self, name: str) -> Answer:
        if name in self._uncovered:
            raise self._uncovered[name].error
        if name in self._scalars:
            return cast("Answer", self._closed(name))
        if name in self._vectors:
            return cast("Answer", LimitVector(self, self._vectors[name]))
        raise UnknownName("limit", name, list(self))

    def _closed(self, name: str) -> Estimate:
        """The estimate of a scalar with its formula, which is made when asked for."""
        found = self._scalars[name].estimate
        target = dict(self.graph.targets).get(name)  # the cells of blocks have no formulas
        known = target is not None and target.node is not None and not self.graph.has_blocks
        return self._chain.with_formula(name, found) if known else found

    @cached_property
    def _chain(self) -> Chain:
        return Chain(self.graph, chosen(self.method), self.seed)

    def cov(self, left: str, right: str) -> Estimate:
        """The covariance of two scalar outputs that stay random in the limit; else it is 0.

        Args:
            left: The name of one.
            right: The name of the other, or the same.

        Raises:
            UnknownName: No such output.
            UsageError: One of them is a vector.
            LimitError: They rest on fluctuations whose joint law is not known.

        Source: Hajjar, Chizat, Giraud, Lemma C.3 (Gaussian outputs at the start).

        Example:
            >>> import tpcalc as tp
            >>> @tp.program
            ... def start(t):
            ...     b, c = t.random_scalar("b", std=1), t.random_scalar("c", std=1)
            ...     t.output("f", b + c)
            ...     t.output("g", b - 2 * c)
            >>> print(tp.limit(start).cov("f", "g"))
            -1 (exact)
        """
        for name in (left, right):
            if name in self._vectors:
                raise UsageError(f"{name} is a vector.", hint="limit[name].cov takes vectors.")
            self[name]
        part = together(self.graph, [self._places[name].output for name in (left, right)])
        if self.graph.has_blocks:
            return self._cov_of_cells(left, right)
        found = self._chain.covariance(left, right) if self.method == "auto" else None
        if found is not None:
            return found
        drawn = numbers(part, "particles", self.budget, self.seed).found
        return paired(*(drawn[name][0] for name in (left, right)))

    def formula(self, name: str) -> Formula | None:
        """An output as a formula of other outputs, Gaussians and averages.

        Args:
            name: Its name; of a block (``"h[1,2,:]"``) that of one of its cells, or its own: the
                formula then is one of matrices.

        Returns:
            None where it is larger than the size budget.

        Raises:
            UnknownName: No such output.

        Source: Hajjar, Chizat, Giraud, Appendix B.2 (ZHat, ZDot).

        Example:
            >>> import tpcalc as tp
            >>> @tp.program
            ... def start(t):
            ...     t.output("y", 2 * t.gaussian("v"))
            >>> print(tp.limit(start).formula("y").text)
            Z[y] = 2 v
        """
        blocks = dict(self.graph.targets)
        if name in blocks:
            return express(self.graph, [name]).get(name)
        if name not in self._places:
            raise UnknownName("output", name, [*blocks, *self._places])
        place = self._places[name]
        graph = cells_below(self.graph, place.output, place.held, name)
        return None if graph is None else express(graph, [name]).get(name)

    def _cov_of_cells(self, left: str, right: str) -> Estimate:
        """The covariance of two cells: of few cells below them exactly, else of the draws."""
        own = [self._scalars[name].estimate for name in (left, right)]
        if not all(one.random for one in own):
            return ZERO
        out = self._without_outputs()
        for name in dict.fromkeys((left, right)):
            out.output(name, self._cell(out, name))
        program = out.finish(keep_unused=False)
        large = is_read_as_blocks(program, self.reading)
        return paired(*own) if large else self.ask(program).cov(left, right)

    @cached_property
    def _places(self) -> dict[str, Place]:
        """Where each result stands."""
        return {place.name: place for place in places(self.program, self.graph)}

    def _without_outputs(self) -> Builder:
        """A copy of the program for other questions; outputs with given values stay."""
        kept = (output for output in self.program.outputs if output[0] in (self.given or {}))
        return Builder.copy(replace(self.program, outputs=tuple(kept)))

    def _cell(self, out: Builder, name: str) -> Ref:
        """The node of a result in a copy of the program."""
        place = self._places[name]
        ref = self.program.ref(place.output)
        return picked(out, ref, self.program.types[ref].axes, place.cell)

    def array(self, pattern: str) -> tuple[Array, Array]:
        """Values and errors of all scalars that fit a pattern, with an axis for each number.

        Args:
            pattern: ``"f[*"`` (steps, inputs, outputs), or ``"f[2,16:]"``, the inputs of step 2
                from 16 on.

        Returns:
            Two arrays; their axes are the numbers in the names that are not the same in all.

        Raises:
            UnknownName: No scalar fits, or the numbers do not make an array.

        Source: the naming of outputs of training runs (``tp.train``).

        Example:
            >>> import tpcalc as tp
            >>> @tp.program
            ... def start(t):
            ...     v = t.gaussian("v", axes={"b": 3})
            ...     t.output("square", t.inner(v, v))
            >>> tp.limit(start).array("square*")[0].tolist()
            [1.0, 1.0, 1.0]
        """
        names = matching(list(self._scalars), [pattern])
        inside = (COMMA.join(Name.of(name).parts) for name in names)
        places = [tuple(map(int, re.findall(r"\d+", part))) for part in inside]
        sizes = [len(set(column)) for column in zip(*places, strict=False)]
        shape = [size for size in sizes if size > 1]
        if not names or prod(shape) != len(names):
            raise UnknownName("array of scalars", pattern, list(self._scalars))
        found = [
            self._scalars[name].estimate for _, name in sorted(zip(places, names, strict=True))
        ]
        values, errors = ([getattr(one, of) for one in found] for of in ("value", "stderr"))
        return np.array(values).reshape(shape), np.array(errors).reshape(shape)

    def __iter__(self) -> Any:
        return iter([*self._scalars, *self._vectors, *self._uncovered])

    def __repr__(self) -> str:
        lines = [
            f"{row.name} -> {_power(row.n_power)}{row.estimate}"
            + (f", {row.note}" if row.note else "")
            for row in self.table.scalars
        ]
        lines += [
            f"{row.name} -> {_power(row.n_power)}Z, E Z = {row.mean}, E Z^2 = {row.second_moment}"
            for row in self.table.vectors
        ]
        lines += [f"{row.name}: {row.text}" for row in self.table.uncovered]
        return "\n".join(lines)

    @property
    def seed(self) -> int:
        """The seed of all draws."""
        return self.table.provenance.seed or 0


class LimitVector(Shown):
    """The limit variable Z of a vector output (n**(-n_power) times its coordinates).

    Attributes:
        mean, second_moment: Estimates of E Z and E Z^2.
        n_power: The power of n taken out.
        table: Both moments as a record.

    Example:
        >>> import tpcalc as tp
        >>> @tp.program
        ... def start(t):
        ...     t.output("y", tp.relu(t.gaussian("v")))
        >>> print(tp.limit(start)["y"].moment(lambda z: z**4))
        1.5 (exact)
    """

    def __init__(self, owner: Limit, row: VectorRow) -> None:
        self._owner = owner
        self.table = LimitTable((), (row,), owner.table.provenance)
        self.name = row.name
        self.mean = row.mean
        self.second_moment = row.second_moment
        self.n_power = row.n_power

    @property
    def formula(self) -> Formula | None:
        """Z as a formula; None where it is larger than the size budget."""
        return self._owner.formula(self.name)

    def moment(self, fn: Callable[[Expr], Expr]) -> Estimate:
        """E fn(Z)."""
        return self._with(Fn(expression(fn, "a function to average"), 1), [self.name])

    def cov(self, other: LimitVector) -> Estimate:
        """E Z Z' for two vectors of one program and one dimension class, powers of n taken out."""
        if not isinstance(other, LimitVector):
            raise UsageError(
                f"cov takes a vector of the same limit, not {type(other).__name__}.",
                where=self.name,
                hint="Give what limit[name] is for a vector output.",
            )
        if other._owner is not self._owner and other._owner.program != self._owner.program:
            raise UsageError(
                f"{other.name} is of another program or selection of outputs.",
                where=self.name,
                hint="Take both vectors from one limit.",
            )
        return self._with(Fn(Var(0) * Var(1), 2), [self.name, other.name])

    def __float__(self) -> float:
        raise UsageError(
            f"{self.name} is a vector, and no number.",
            hint="Numbers of its coordinates Z are .mean, .second_moment and .moment(f).",
        )

    def _with(self, fn: Fn, names: Sequence[str]) -> Estimate:
        owner = self._owner
        builder = owner._without_outputs()
        refs = []
        for name in names:
            ref, power = owner._cell(builder, name), owner._vectors[name].n_power.exact or Ex()
            refs.append(ref if power == Ex() else builder.add(Scale(ref, as_ex(-power))))
        asked = f"E[{fn.text}] of {', '.join(names)}"
        builder.output(asked, builder.add(Moment(fn, tuple(refs))))
        return owner.ask(builder.finish(keep_unused=False))[asked]

    def sample(self, count: int) -> Array:
        """Draws of Z (coordinates of the particles; dependent within a replicate, as Sobol is)."""
        owner = self._owner
        place = owner._places[self.name]
        count = checks.whole(count, "count", least=0)
        if place.target.node is None:
            return np.zeros(count)
        compiled = compile_graph(owner.graph, moments=False, collect=[place.numbers])
        budget = owner.budget
        replicates = max(2, -(-count // budget.samples))
        draws = run_particles(
            compiled, replace(budget, replicates=replicates, rel_error=None), owner.seed
        )
        return collect(draws, 0, count)

    def _repr_latex_(self) -> str | None:
        return f"${self.formula.latex}$" if self.formula else None

    def __repr__(self) -> str:
        text = self.formula.text if self.formula else "Z"
        return f"{_power(self.n_power)}{text}   (E Z = {self.mean}, E Z^2 = {self.second_moment})"


if TYPE_CHECKING:

    class Answer(Estimate, LimitVector):
        """What ``limit[name]`` is: the name says whether it is a number or a vector."""

        formula: Any
        table: Any


def _power(power: Exponent) -> str:
    return "" if power == PLAIN else f"{power.size('n')} * "
