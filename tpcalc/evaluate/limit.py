"""``limit``: what a program converges to."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from tpcalc import checks
from tpcalc.dsl import filled
from tpcalc.engine.device.devices import device_name
from tpcalc.evaluate.answers import Limit
from tpcalc.evaluate.chain import ZERO
from tpcalc.evaluate.numbers import numbers
from tpcalc.evaluate.particles.compile import directions, samples_for
from tpcalc.evaluate.particles.emit import COLUMNS
from tpcalc.evaluate.particles.estimate import Budget, Draws, recorded
from tpcalc.evaluate.wanted import GROWING as GROWING
from tpcalc.evaluate.wanted import Asked, Place, conditioned, covered, explosion, places
from tpcalc.functions import Call
from tpcalc.functions.form import is_bounded, least, loose
from tpcalc.limit.express import express
from tpcalc.limit.graph import LimitGraph, average_of, function_of, outer_of
from tpcalc.program.nodes import Kind
from tpcalc.program.program import Program, cells, matching
from tpcalc.program.types import ReadAs
from tpcalc.progress import Progress
from tpcalc.results import (
    PLAIN,
    Estimate,
    Exponent,
    Formula,
    LimitTable,
    NotCovered,
    ScalarRow,
    Status,
    VectorRow,
)
from tpcalc.results.tables import provenance


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
    values: Mapping[str, object] | None = None,
    given: Mapping[str, object] | None = None,
    storage: str = "float64",
    device: str | None = None,
    memory_limit: int | None = None,
    formulas: bool | Sequence[str] = False,
    rescale: bool | Sequence[str] = False,
    method: str = "auto",
    reading: ReadAs = "auto",
    progress: Progress | None = None,
) -> Limit:
    """The infinite-width limit of a program.

    Args:
        program: A program, or a function decorated with ``tp.program``; with ``depths=`` of
            ``tp.limit`` a run or a network of L blocks.
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
            from 16 on, ``"-g"`` for what is left out; default all.
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
        reading: How a program of blocks, such as a training run with samples as axes, is read.
            ``"cells"``: cell by cell, which knows more forms. ``"blocks"``: as blocks, however few
            the cells; what these do not say is not covered. ``"auto"``: as blocks where cells are
            many, and cell by cell where that can tell more.
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
        EvaluationError: No output has a number: an expectation is infinite, say, or the method
            that was asked for gives none.
        MissingBackend: The device is not there, or torch is not installed.
        OutOfMemory: It does not fit; said before the run.

    Source: Hajjar, Chizat, Giraud, Theorem B.1 (Master Theorem).
    """
    started = time.perf_counter()
    source = filled(program, reading)
    seed = checks.seed(seed)
    checks.called(progress, "progress", 0.0, "")
    device = device_name(device)
    powers = checks.powers(values, source.symbols) if values is not None else None
    if not isinstance(formulas, bool):
        formulas = checks.names(formulas, "formulas")
    if not isinstance(rescale, bool) and rescale != GROWING:
        rescale = checks.names(rescale, "rescale")
    outputs = outputs if outputs is None else checks.names(outputs, "outputs")
    held = checks.named(given, "given")
    derived = covered(source, Asked(outputs, held, powers, rescale, seed, reading))
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
    lost = _ordered(names, (*cover.uncovered, *derived.lost, *found.lost(program)))
    if len(lost) == len(names):
        raise lost[0].error
    uncovered = tuple(
        replace(row, name=cell) for row in lost for cell in cells(program, row.name, outputs)
    )
    printed = _formulas(program, graph, formulas)
    known = [place for place in places(program, graph, outputs) if place.output not in found.failed]
    rows = [_row(program, place, found.found[place.numbers], printed) for place in known]
    scalars = [row for row in rows if isinstance(row, ScalarRow)]
    vectors = [row for row in rows if isinstance(row, VectorRow)]
    draws = found.draws
    settings = {"method": method, **recorded(found.budget, draws)}
    told = ", ".join(f"{name} = {number:.10g}" for name, number in held.items())
    if told:
        settings["given"] = told
    record = provenance(source.digest, seed, settings, time.perf_counter() - started)
    said = (f"the limit of networks with {told}",) if told else ()
    notes = (*said, *program.notes, *limit_notes(graph, scalars, draws, found.rare), *cover.notes)
    every = [cell for name in names for cell in cells(program, name, outputs)]
    exploded = explosion(every, [*scalars, *vectors], uncovered)
    table = LimitTable(tuple(scalars), tuple(vectors), record, notes, uncovered, exploded)

    def ask(other: Program) -> Limit:
        own = derived.values
        if own is not None:
            own = {name: value for name, value in own.items() if name in other.symbols}
        return limit(
            other,
            seed=seed,
            values=own,
            given=derived.given,
            method=method,
            reading=reading,
            **found.budget.fixed,
        )

    return Limit(program, graph, found.budget, table, ask, derived.values, method, held, reading)


def _row(
    program: Program, place: Place, estimates: Sequence[Estimate], printed: Mapping[str, Formula]
) -> ScalarRow | VectorRow:
    """The row of a table for a result."""
    name, cell, target = place.output, place.name, place.target
    power = Exponent.number(target.power)
    if program.types[program.ref(name)].kind is Kind.SCALAR:
        (value,) = estimates or (ZERO,)
        gone = target.power < 0 and target.node is None
        note = f"of size n^({power}) as written" if gone else ""
        power = PLAIN if target.node is None else power
        return ScalarRow(cell, value, power, printed.get(name), note)
    if target.node is None:
        return VectorRow(cell, ZERO, ZERO)
    mean, second = estimates
    return VectorRow(cell, mean, second, power, printed.get(name))


def _ordered(names: Sequence[str], rows: Sequence[NotCovered]) -> tuple[NotCovered, ...]:
    place = {name: index for index, name in enumerate(names)}
    return tuple(sorted(rows, key=lambda row: place[row.name]))


def _formulas(
    program: Program, graph: LimitGraph, wanted: bool | Sequence[str]
) -> dict[str, Formula]:
    """The formulas of outputs, of a block for all its cells."""
    if isinstance(wanted, bool):
        return express(graph) if wanted else {}
    names = [name for name, _ in graph.targets]
    return express(graph, [n for n in names if matching([n, *cells(program, n)], wanted)])


def _growing(graph: LimitGraph) -> list[str]:
    """Functions of vectors that no limit theorem covers."""
    fast = {
        part.atom.name
        for node in graph.nodes
        if (own := function_of(node) or average_of(node)) is not None and own.vectors
        for part in loose(own.fn.expr)
        if isinstance(part, Call)
        and part.atom.facts.growth is None
        and not (is_bounded(part) or _is_slow(part))
    }
    if not fast:
        return []
    return [
        f"{', '.join(sorted(fast))} grows faster than every polynomial: the limit theorem does not "
        "cover it"
    ]


def _is_slow(call: Call) -> bool:
    """Whether this is the logarithm of what stays above 0: smaller than its argument."""
    return call.atom.facts.order == 0 and least(call.arg) > 0


def _rare(rare: Mapping[str, str]) -> list[str]:
    """Averages that samples may not have seen the most of."""
    degrees = {name: Fraction(degree) for name, degree in rare.items() if degree != "oo"}
    if not degrees:
        return []
    shown = ", ".join(list(degrees)[:6]) + (", ..." if len(degrees) > 6 else "")
    most = max(degrees.values())
    return [
        f"averages of functions that grow like polynomials of degrees up to {most}: rare samples "
        f"may dominate, and standard errors may be too small: {shown}"
    ]


def limit_notes(
    graph: LimitGraph,
    scalars: Sequence[ScalarRow],
    draws: Draws | None,
    rare: Mapping[str, str],
) -> tuple[str, ...]:
    """What a reader of a limit should know besides its numbers."""
    notes = []
    vanishing = [row.name for row in scalars if row.note]
    if vanishing:
        shown = ", ".join(vanishing[:6]) + (", ..." if len(vanishing) > 6 else "")
        notes.append(f"the limit is exactly 0, by the powers of n as written: {shown}")
    growing = [
        name for name, target in graph.targets if target.power > 0 and target.node is not None
    ]
    if growing:
        notes.append(
            "grows as its powers of n are written, or less if a moment vanishes: "
            + ", ".join(growing[:6])
        )
    if any(row.estimate.random for row in scalars):
        notes.append(
            "random in the limit (value: its mean; sd: its own spread): "
            + ", ".join([row.name for row in scalars if row.estimate.random][:6])
        )
    notes.extend(_growing(graph))
    outer = any((own := outer_of(node)) is not None and own.forms for node in graph.nodes)
    if outer and draws is not None:
        notes.append(
            f"updates entry by entry are averaged over the first {COLUMNS} samples of the columns, "
            "or an eighth of more"
        )
    if draws is not None and graph.has_blocks:
        share = directions(graph) / draws.samples
        notes.append(
            f"{draws.samples} samples for {directions(graph)} vectors that a matrix is applied to: "
            f"averages are off by a part of the order of {0.01 * share:.1g}, beside standard errors"
        )
    if draws is not None and draws.status is Status.TOLERANCE_NOT_REACHED:
        notes.append("the error target was not reached; raise max_samples")
    return (*notes, *_rare(rare))
