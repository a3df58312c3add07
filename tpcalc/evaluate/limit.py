"""``limit``: what a program converges to."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.dsl import filled
from tpcalc.dsl.elementwise import expression
from tpcalc.engine.device.devices import device_name
from tpcalc.errors import UnknownName, UsageError
from tpcalc.evaluate.chain import ZERO, Chain, chosen, together
from tpcalc.evaluate.given import conditioned
from tpcalc.evaluate.growing import GROWING, explosion
from tpcalc.evaluate.notes import limit_notes
from tpcalc.evaluate.numbers import Numbers, numbers
from tpcalc.evaluate.particles.blocks import samples_for
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.evaluate.particles.estimate import (
    Budget,
    collect,
    paired,
    recorded,
    run_particles,
)
from tpcalc.evaluate.wanted import Asked, covered, rows
from tpcalc.functions import Expr, Fn, Var
from tpcalc.limit.express import express
from tpcalc.limit.graph import LimitGraph
from tpcalc.orders import as_ex
from tpcalc.passes.selected import cells, matching
from tpcalc.program.nodes import Kind, Moment, Scale
from tpcalc.program.program import Builder, Program
from tpcalc.results import (
    Estimate,
    Formula,
    LimitTable,
    NotCovered,
    ScalarRow,
    VectorRow,
    checks,
)
from tpcalc.results.provenance import provenance

if TYPE_CHECKING:
    from tpcalc.engine.run import Progress

__all__ = ["GROWING", "Limit", "LimitVector", "limit"]

MOST = 400_000  # cells that a program is split into


class Limit:
    """The limit of a program; ``tp.limit`` makes it.

    ``limit[name]`` is an ``Estimate`` for a scalar output, a ``LimitVector`` for a vector output.

    Args:
        program: The program, with the outputs that were asked for.
        graph: Its limit graph.
        budget: What the numbers were computed with.
        table: All of it as a plain record.
        values: Numbers for symbols in exponents.
        method: What evaluates expectations.
        given: Values of random scalars.

    Example:
        >>> from tpcalc.dsl import program
        >>> @program
        ... def start(t):
        ...     v = t.gaussian("v")
        ...     t.output("square", t.inner(v, v))
        >>> print(limit(start)["square"])
        1 (exact)
    """

    def __init__(
        self,
        program: Program,
        graph: LimitGraph,
        budget: Budget,
        table: LimitTable,
        values: Mapping[str, Fraction] | None = None,
        method: str = "auto",
        given: Mapping[str, float] | None = None,
    ) -> None:
        self.program = program
        self.graph = graph
        self.budget = budget
        self.table = table
        self.values = values
        self.method = method
        self.given = given
        self._scalars = {row.name: row for row in table.scalars}
        self._vectors = {row.name: row for row in table.vectors}
        self._uncovered = {row.name: row for row in table.uncovered}

    def __getitem__(self, name: str) -> Any:
        if name in self._uncovered:
            raise self._uncovered[name].error
        if name in self._scalars:
            return self._closed(name)
        if name in self._vectors:
            return LimitVector(self, self._vectors[name])
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
            >>> from tpcalc.dsl import program
            >>> @program
            ... def start(t):
            ...     b, c = t.random_scalar("b", std=1), t.random_scalar("c", std=1)
            ...     t.output("f", b + c)
            ...     t.output("g", b - 2 * c)
            >>> print(limit(start).cov("f", "g"))
            -1 (exact)
        """
        for name in (left, right):
            if name in self._vectors:
                raise UsageError(f"{name} is a vector.", hint="limit[name].cov takes vectors.")
            self[name]
        _check_single(self, left)
        part = together(self.graph, (left, right))
        found = self._chain.covariance(left, right) if self.method == "auto" else None
        if found is not None:
            return found
        drawn = numbers(part, "particles", self.budget, self.seed).found
        return paired(*(drawn[name][0] for name in (left, right)))

    def array(self, pattern: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
            >>> from tpcalc.dsl import program
            >>> @program
            ... def start(t):
            ...     v = t.gaussian("v", axes={"b": 3})
            ...     t.output("square", t.inner(v, v))
            >>> limit(start).array("square*")[0].tolist()
            [1.0, 1.0, 1.0]
        """
        names = matching(list(self._scalars), [pattern])
        numbers = [tuple(map(int, re.findall(r"\d+", name.partition("[")[2]))) for name in names]
        sizes = [len(set(column)) for column in zip(*numbers, strict=False)]
        shape = [size for size in sizes if size > 1]
        if not names or prod(shape) != len(names):
            raise UnknownName("array of scalars", pattern, list(self._scalars))
        found = [
            self._scalars[name].estimate for _, name in sorted(zip(numbers, names, strict=True))
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


class LimitVector:
    """The limit variable Z of a vector output (n**(-n_power) times its coordinates).

    Attributes:
        mean, second_moment: Estimates of E Z and E Z^2.
        n_power: The power of n taken out.
    """

    def __init__(self, owner: Limit, row: VectorRow) -> None:
        self._owner = owner
        self.name = row.name
        self.mean = row.mean
        self.second_moment = row.second_moment
        self.n_power = row.n_power

    @property
    def formula(self) -> Formula | None:
        """Z as a formula; None where it is larger than the size budget, or a cell of a block."""
        if self._owner.graph.has_blocks:
            return None
        return express(self._owner.graph, [self.name]).get(self.name)

    def moment(self, fn: Callable[[Expr], Expr]) -> Estimate:
        """E fn(Z).

        Args:
            fn: A function of an expression, such as ``tp.relu`` or ``lambda z: z**4``.

        Raises:
            TraceError: It is none.
        """
        return self._with(Fn(expression(fn, "a function to average"), 1), [self.name])

    def cov(self, other: LimitVector) -> Estimate:
        """E Z Z' for two vectors of one program and one dimension class, powers of n taken out.

        Raises:
            UsageError: The other is not a vector of this program.
        """
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

    def _with(self, fn: Fn, names: Sequence[str]) -> Estimate:
        owner = self._owner
        _check_single(owner, self.name)
        program = owner.program
        builder = Builder.copy(program)
        refs = []
        for name in names:
            ref, power = program.ref(name), Fraction(owner._vectors[name].n_power)
            refs.append(ref if power == 0 else builder.add(Scale(ref, as_ex(-power))))
        asked = f"E[{fn.text}] of {', '.join(names)}"
        builder.output(asked, builder.add(Moment(fn, tuple(refs))))
        found = limit(
            builder.finish(),
            outputs=[asked],
            seed=owner.seed,
            values=owner.values,
            method=owner.method,
            given=owner.given,
            **owner.budget.fixed,
        )
        answer: Estimate = found[asked]
        return answer

    def sample(self, count: int) -> NDArray[np.float64]:
        """Draws of Z (coordinates of the particles; dependent within a replicate, as Sobol is).

        Args:
            count: How many.

        Returns:
            An array of shape (count,).
        """
        owner = self._owner
        _check_single(owner, self.name)
        count = checks.whole(count, "count", least=0)
        if dict(owner.graph.targets)[self.name].node is None:
            return np.zeros(count)
        compiled = compile_graph(owner.graph, moments=False, collect=[self.name])
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


def _check_single(owner: Limit, name: str) -> None:
    """Refuse what is asked of a single output where there are blocks."""
    if owner.graph.has_blocks:
        raise UsageError(
            "moments, covariances and samples are those of outputs, not of cells of blocks.",
            where=name,
            hint="Take a run of fewer samples or steps, which has an output for each cell.",
        )


def _power(n_power: str) -> str:
    return "" if n_power == "0" else f"n^({n_power}) * "


def limit(
    program: Program,
    *,
    seed: int = 0,
    samples: int | None = None,
    replicates: int | None = None,
    rel_error: float | None = None,
    max_samples: int = 2**20,
    threads: int | None = None,
    outputs: Sequence[str] | None = None,
    values: Mapping[str, Fraction] | None = None,
    given: Mapping[str, float] | None = None,
    storage: str = "float64",
    device: str | None = None,
    memory_limit: int | None = None,
    formulas: bool | Sequence[str] = False,
    rescale: bool | Sequence[str] = False,
    method: str = "auto",
    progress: Progress | None = None,
) -> Limit:
    """The infinite-width limit of a program.

    Args:
        program: A program, or a function decorated with ``tp.program``.
        seed: Of all draws; the same seed gives the same digits on any number of threads.
        samples: Samples of one replicate, a power of two (default 2^14; of blocks at least 16 for
            each vector that a matrix is applied to).
        replicates: Independent replicates behind each error bar (default 16; 64 where the limit
            itself is random; of blocks 8, and 16).
        rel_error: Double the samples until every scalar's standard error is below this part of
            its value, or say that it was not reached.
        max_samples: Where the doubling stops.
        threads: How many share the work (default: one for each core).
        outputs: Names or patterns of the outputs wanted: ``"f*"``, or ``"f[2,16:]"`` for the cells
            from 16 on; default all.
        values: Numbers for symbols in exponents, by name.
        given: Values of random scalars, by name: of random inputs of the program, and of outputs
            that are Gaussian in the limit. The limit is that of networks in which they have these
            values.
        storage: ``"float32"`` halves the memory of directions; arithmetic stays float64, but for
            a device, where it is float32 with sums in float64.
        device: Where torch samples: ``"cuda"``, ``"cuda:1"``, ``"cpu"``, ``"auto"`` (CUDA where
            there is one), with the same draws for a seed; default: the compiled engine of the CPU.
        memory_limit: Bytes to stay within (default: what is available).
        formulas: Whether the table holds formulas, or patterns of the names that get one;
            ``result[name].formula`` has them anyway.
        rescale: Whether scalars that vanish or explode are given after their power of n is taken
            out (``n_power`` in the table), or patterns of the names that are; ``"growing"``: those
            that explode. Without it what vanishes is 0 and what explodes is not covered; vectors
            are always given that way.
        method: ``"auto"``: each expectation by a closed form where it has one, else by quadrature
            (one or two dimensions), else by particles, and each answer says which. ``"exact"``,
            ``"quadrature"``, ``"particles"``: that one alone.
        progress: Called with a fraction and a text.

    Returns:
        The limit; ``result[name]`` is an estimate (scalars) or a limit variable (vectors). An
        output that is not covered is a row of the table that says why, and ``result[name]`` raises
        the error.

    Raises:
        UsageError: An argument that is of the wrong kind or out of range.
        UnknownName: An output or a symbol that the program does not have.
        ScaleError: No output is covered, the first because a scalar grows, or a vector explodes
            where a function that is not homogeneous reads it; or a symbol has no value.
        LimitError: No output is covered, the first because a rule is missing.
        EvaluationError: The method that was asked for does not give an output.
        MissingBackend: The device is not there, or torch is not installed.
        OutOfMemory: It does not fit; said before the run.

    Source: Hajjar, Chizat, Giraud, Theorem B.1 (Master Theorem).
    """
    started = time.perf_counter()
    source = filled(program)
    seed = checks.whole(seed, "seed", least=0)
    checks.called(progress, "progress")
    device = device_name(device)
    values = checks.powers(values, source.symbols) if values is not None else None
    if not isinstance(formulas, bool):
        formulas = checks.names(formulas, "formulas")
    if not isinstance(rescale, bool) and rescale != GROWING:
        rescale = checks.names(rescale, "rescale")
    outputs = outputs if outputs is None else checks.names(outputs, "outputs")
    derived = covered(source, Asked(outputs, given or {}, values, rescale, seed))
    program, cover, graph = derived.program, derived.cover, derived.cover.graph
    names = [name for name, _ in program.outputs]
    for name, number in derived.given.items():
        graph = conditioned(graph, name, number)
    budget = Budget(
        samples_for(graph) if samples is None else samples,
        16 if replicates is None else replicates,
        rel_error,
        max_samples,
        threads,
        storage,
        memory_limit,
        device,
    )
    found = numbers(graph, method, budget, seed, progress, replicates=replicates)
    lost = _ordered(names, (*cover.uncovered, *derived.lost, *_failures(program, found)))
    if len(lost) == len(names):
        raise lost[0].error
    uncovered = tuple(
        replace(row, name=cell) for row in lost for cell in cells(program, row.name, outputs)
    )
    printed = _formulas(graph, formulas)
    scalars: list[ScalarRow] = []
    vectors: list[VectorRow] = []
    for name, target, cell, at in rows(derived, outputs):
        power = str(target.power)
        if name in found.failed:
            continue
        if program.types[program.ref(name)].kind is Kind.SCALAR:
            (value,) = found.found[at] or (ZERO,)
            gone = target.power < 0 and target.node is None
            note = f"of size n^({power}) as written" if gone else ""
            power = "0" if target.node is None else power
            scalars.append(ScalarRow(cell, value, power, printed.get(name), note))
        elif target.node is None:
            vectors.append(VectorRow(cell, ZERO, ZERO))
        else:
            mean, second = found.found[at]
            vectors.append(VectorRow(cell, mean, second, power, printed.get(name)))
    draws = found.draws
    settings = {"method": method, **recorded(found.budget, draws)}
    held = ", ".join(f"{name} = {float(number):.10g}" for name, number in (given or {}).items())
    if held:
        settings["given"] = held
    record = provenance(source.digest, seed, settings, time.perf_counter() - started)
    said = (f"the limit of networks with {held}",) if held else ()
    notes = (*said, *program.notes, *limit_notes(graph, scalars, draws, found.rare), *cover.notes)
    every = [cell for name in names for cell in cells(program, name, outputs)]
    exploded = explosion(every, [*scalars, *vectors], uncovered)
    table = LimitTable(tuple(scalars), tuple(vectors), record, notes, uncovered, exploded)
    return Limit(program, graph, found.budget, table, derived.values, method, given)


def _failures(program: Program, found: Numbers) -> Iterator[NotCovered]:
    """What could not be evaluated."""
    for name, failure in found.failed.items():
        ref, error = program.ref(name), failure.error
        place = error.where or program.place(ref)
        vector = program.types[ref].kind is Kind.VECTOR
        yield NotCovered(
            name, place, failure.term, error.message, error.hint or "", error.code, vector
        )


def _ordered(names: Sequence[str], rows: Sequence[NotCovered]) -> tuple[NotCovered, ...]:
    place = {name: index for index, name in enumerate(names)}
    return tuple(sorted(rows, key=lambda row: place[row.name]))


def _formulas(graph: LimitGraph, wanted: bool | Sequence[str]) -> dict[str, Formula]:
    if graph.has_blocks:
        return {}
    if isinstance(wanted, bool):
        return express(graph) if wanted else {}
    return express(graph, matching([name for name, _ in graph.targets], wanted))
