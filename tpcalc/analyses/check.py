"""``check``: what becomes of training at infinite width, read off the program of a training run.

Nothing but the exponents that the program derives is looked at: no name of a parameterization and
no table of known verdicts. A name that is recognised becomes a note, after the verdict.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from tpcalc.analyses.gauge import known_as
from tpcalc.analyses.orders import Order, Orders, orders
from tpcalc.analyses.probe import Probe, probe
from tpcalc.analyses.regime import Judge, Regime, decide, known, regime, size
from tpcalc.analyses.stationary import later
from tpcalc.catalog.architectures.mlp import MLP
from tpcalc.catalog.losses import lookup as find_loss
from tpcalc.catalog.parameterizations import Parameterization
from tpcalc.catalog.parameterizations import lookup as find_parameterization
from tpcalc.catalog.training import Rate
from tpcalc.errors import StudyError
from tpcalc.functions import Fn, Var
from tpcalc.orders import Ex
from tpcalc.orders.chamber import Region
from tpcalc.program.nodes import LinComb, Moment
from tpcalc.program.program import Builder, Program, prune
from tpcalc.results import LayerFacts, OrderRow, Samples, Verdict, checks

__all__ = ["check"]

KERNEL = Fn(Var(0) * (Var(0) + 2 * Var(1)), 2)  # |x_t|^2 - |x_0|^2 from x_t - x_0 and x_0
LENGTHS = (4, 6)  # steps that are followed for a table that repeats
RATES = 16  # steps for which learning rates are looked at
START = 0  # the sample of the first step whose first pass is watched

# Acute angles and targets of one sign: no gate of a rectifier closes, no expectation is nearly 0.
INPUTS = (
    (1.1, 0.5, 0.6, -0.1),
    (0.6, 0.9, 0.1, 0.5),
    (0.9, -0.2, 0.7, 0.6),
    (0.4, 0.7, 0.9, 0.3),
    (1.0, 0.3, -0.1, 0.7),
)
TARGETS = (1.0, 0.7, 1.3, 0.6, 1.1)


@dataclass(frozen=True)
class _Run:
    """A training run, with the outputs that facts about its layers are read from."""

    probe: Probe
    program: Program

    def _there(self, names: list[str]) -> tuple[str, ...]:
        """Those of the names that the program has: a gradient that is 0 has no update."""
        return tuple(name for name in names if name in self.program.output)

    def updates(self, layer: int, step: int) -> tuple[str, ...]:
        """What the update of step t - 1 adds to the preactivations of a layer at the query."""
        query, outputs = self.probe.query, self.probe.outputs
        places = [""]
        if layer == self.probe.depth + 1 and outputs > 1:
            places = [f",{k}" for k in range(outputs)]
        weights = [f"dW_x[{layer},{step},{query}{place}]" for place in places]
        return self._there(weights + [f"dB[{layer},{step}{place}]" for place in places])

    def features(self, layer: int, step: int) -> tuple[str, ...]:
        """The change of the features of a layer."""
        return self._there([self.probe.features(layer, step)])

    def kernel(self, layer: int, step: int) -> tuple[str, ...]:
        """The change of the kernel of a layer."""
        return self._there([_kernel_name(layer, step, self.probe.query)])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All outputs that are asked."""
        run = self.probe
        layers, steps = range(1, run.depth + 1), range(1, run.steps + 1)
        names = [*run.f(0), *(f"h[{layer},0,{run.query}]" for layer in layers)]
        for step in steps:
            names += [*run.f(step), *run.changes(step)]
            names += [f"h[{layer},{step},{run.query}]" for layer in layers]
            for layer in (*layers, run.depth + 1):
                names += self.updates(layer, step)
            for layer in layers:
                names += [*self.features(layer, step), *self.kernel(layer, step)]
        return tuple(names)


def check(
    architecture: MLP,
    parameterization: Parameterization | str,
    data: Samples | None = None,
    *,
    steps: int = 3,
    lr: Rate = Fraction(1),
    loss: str = "mse",
    batch: int = 1,
    optimizer: str = "sgd",
    at: Mapping[str, object] | None = None,
    verify: bool = True,
    seed: int = 0,
) -> Verdict:
    """Whether training is trivial, unstable, in the kernel regime, or learns features.

    Unstable: h or f explodes. Trivial: the outputs do not move. Kernel: they move, the features of
    the last layer do not. Feature learning: both move. All of it at an input that is no training
    sample. ``valid_for`` says ``"all t"`` where the orders of later steps are known to repeat those
    of a step that was followed, with learning-rate exponents that no longer change, or where no
    later step can change the verdict.

    Args:
        architecture: The network.
        parameterization: A catalogue name or a parameterization.
        data: Training data; None: generic data, no two inputs orthogonal.
        steps: Number of updates that are followed.
        lr: The factor of the learning rate, as in ``train``.
        loss: Catalogue name.
        batch: Samples in a step.
        optimizer: Catalogue name.
        at: A sample point for symbols in the exponents: the verdict holds on a region around it.
        verify: Whether leading coefficients are tested with the particle engine where their form
            does not show that they are not 0.
        seed: Of that test.

    Returns:
        The verdict with the facts that decide it, layer by layer.

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UnknownName: No such parameterization, loss or optimizer.
        ScaleError: A symbol without a value.

    Source: Yang and Hu, Feature learning in infinite-width neural networks, section 3; Hajjar,
        Chizat, Giraud, Proposition 3.1 and Definitions B.1 and B.2.

    Example:
        >>> found = check(MLP(3, "relu"), "naive-ip", steps=1)
        >>> found.verdict, found.stationary_start, found.initial, found.valid_for
        ('trivial', True, 'vanishes', 'all t')
        >>> found.facts[0]
        'the start is a stationary point: every first update vanishes; the largest, of layer 2, \
contributes n^(-1/2) to its preactivations'
    """
    started = time.perf_counter()
    steps = checks.whole(steps, "steps", least=1, hint="It counts updates.")
    batch = checks.whole(batch, "batch", least=1, hint="It counts the samples of a step.")
    chosen = find_parameterization(parameterization)
    given = _generic(loss, (steps + 1) * batch) if data is None else data
    run = _run(architecture, chosen, given, steps, lr, loss, batch, optimizer)
    found = orders(run.program, at=at, verify=verify, seed=seed)
    judge = known(found)
    decided = regime(judge, run.probe)
    if decided.verdict == "undecided" and verify:
        decided = decide(run.probe, at=found.point, seed=seed)
    layers = tuple(_layer(judge, run, layer) for layer in range(1, architecture.depth + 2))
    stationary = _stationary(judge, run)
    lasting, lasting_notes = _lasting(
        decided, architecture, chosen, given, batch, loss, found.point
    )
    status, tested = _status(decided)
    region = _joined(decided.region, judge.region)
    return Verdict(
        decided.verdict,
        status,
        stationary,
        decided.initial,
        _facts(decided, stationary, judge, run),
        layers,
        _rows(found, [n for n in run.names if n[:2] in ("dW", "dB")]),
        _rows(found, _output_names(run)),
        "all t" if lasting else f"t<={steps}",
        steps,
        region.lines,
        replace(found.table.provenance, seconds=time.perf_counter() - started),
        (
            *_names_of(chosen, architecture),
            *lasting_notes,
            *(f"{name}: {reason}" for name, reason in tested),
            *(("the data are generic: no two inputs are orthogonal",) if data is None else ()),
            *found.table.notes,
        ),
    )


def _generic(loss: str, rows: int) -> Samples:
    """Data without accidents, with targets that fit the loss."""
    inputs = tuple(INPUTS[row % len(INPUTS)] for row in range(rows))
    numbers = tuple((TARGETS[row % len(TARGETS)],) for row in range(rows))
    signs = tuple((1.0,) for _ in range(rows))
    classes = tuple((1.0, 0.0) if row % 2 else (0.0, 1.0) for row in range(rows))
    chosen = find_loss(loss)
    for targets in (numbers, signs):
        with suppress(StudyError):
            chosen.check(Samples(inputs, targets))
            return Samples(inputs, targets)
    return Samples(inputs, classes)


def _query(data: Samples) -> tuple[float, ...]:
    """An input at acute angles to all samples, if there is one, and collinear to none."""
    rows = np.asarray(data.inputs, dtype=float)
    rows = rows[np.linalg.norm(rows, axis=1) > 0]
    drawn = np.random.default_rng(0).standard_normal((64, data.dimension))
    candidates = np.round(np.concatenate([drawn, np.abs(drawn)]), 2)
    if not len(rows):
        return tuple(float(entry) for entry in candidates[0])
    lengths = np.linalg.norm(candidates, axis=1)[:, None] * np.linalg.norm(rows, axis=1)
    cosines = candidates @ rows.T / np.maximum(lengths, 1e-12)
    apart = np.all(np.abs(cosines) < 0.95, axis=1)
    worst = np.min(cosines, axis=1)
    worth = np.where(worst > 0, 1 + worst, np.min(np.abs(cosines), axis=1))
    return tuple(float(entry) for entry in candidates[int(np.argmax(worth + 2 * apart))])


def _run(
    architecture: MLP,
    parameterization: Parameterization,
    data: Samples,
    steps: int,
    lr: Rate,
    loss: str,
    batch: int,
    optimizer: str,
) -> _Run:
    query = _query(data) if isinstance(data, Samples) else None
    found = probe(
        architecture,
        parameterization,
        data,
        steps=steps,
        lr=lr,
        loss=loss,
        batch=batch,
        optimizer=optimizer,
        query=query,
    )
    builder = Builder.copy(found.program)
    for step in range(1, steps + 1):
        for layer in range(1, architecture.depth + 1):
            change = found.program.ref(found.features(layer, step))
            start = found.program.ref(f"x[{layer},0,{found.query}]")
            moved = builder.add(Moment(KERNEL, (change, start)))
            builder.output(_kernel_name(layer, step, found.query), moved)
    whole = _Run(found, builder.finish())
    asked = {*whole.names, *_start_names(found)}
    outputs = tuple((name, ref) for name, ref in whole.program.outputs if name in asked)
    program = whole.program
    kept = Program(program.dims, program.groups, program.nodes, outputs, program.where)
    return _Run(found, prune(kept))


def _kernel_name(layer: int, step: int, query: int) -> str:
    return f"|x[{layer},{step},{query}]|^2-|x[{layer},0,{query}]|^2"


def _start_names(run: Probe) -> list[str]:
    """The first pass of the first sample, whose sizes are in the first updates."""
    layers = range(1, run.depth + 1)
    return [
        *(f"x[{layer},0,{START}]" for layer in layers),
        *(f"x[{layer},1,{run.query}]" for layer in layers),
        *(f"dh[{layer},0,{START}]" for layer in layers),
        f"dx[{run.depth},0,{START}]",
    ]


def _layer(judge: Judge, run: _Run, layer: int) -> LayerFacts:
    """What training does to a layer."""
    steps = range(1, run.probe.steps + 1)
    updates = [(t, name) for t in steps for name in run.updates(layer, t)]
    features = [(t, name) for t in steps for name in run.features(layer, t)]
    kernels = [(t, name) for t in steps for name in run.kernel(layer, t)]
    moves, moved_at, why = _answer(judge, updates)
    learns, learned_at, _ = _answer(judge, features)
    evolves, evolved_at, _ = _answer(judge, kernels)
    if layer == run.probe.depth + 1:
        learns = evolves = None
    first = [t for t in (moved_at, learned_at, evolved_at) if t is not None]
    return LayerFacts(layer, moves, learns, evolves, min(first, default=None), why)


def _answer(judge: Judge, named: list[tuple[int, str]]) -> tuple[bool | None, int | None, str]:
    """Whether one of the quantities is of order one or larger; None: not known."""
    for step, name in named:
        if judge.sign(name) >= 0 and judge.order(name).status == "exact":
            return True, step, f"{name} is {_of(judge.order(name))}"
    if all(judge.vanishes(name) for _, name in named):
        largest = judge.largest(name for _, name in named)
        if largest is None:
            return False, None, "it is never updated"
        return False, None, f"{largest} is {size(judge.order(largest))}"
    name = next(name for _, name in named if not judge.vanishes(name))
    return None, None, f"{name} is {size(judge.order(name))}: {judge.order(name).reason}"


def _of(order: Order) -> str:
    words = size(order)
    return f"of {words}" if words == "order one" else f"of size {words}"


def _stationary(judge: Judge, run: _Run) -> bool:
    """Whether nothing moves in the first step."""
    layers = range(1, run.probe.depth + 2)
    names = [name for layer in layers for name in run.updates(layer, 1)]
    return all(judge.vanishes(name) for name in (*names, *run.probe.changes(1)))


def _facts(decided: Regime, stationary: bool, judge: Judge, run: _Run) -> tuple[str, ...]:
    """What decides, the first fact first."""
    facts = list(decided.facts)
    if decided.verdict == "trivial":
        facts = (_why_stationary(judge, run) if stationary else _why_stuck(judge, run)) + facts
        facts += _hidden_learning(judge, run)
    elif decided.initial == "vanishes":
        facts += _vanishing(judge, run)
    if decided.verdict == "kernel":
        facts += _hidden_learning(judge, run)
    return tuple(facts)


def _first_updates(run: _Run) -> list[tuple[int, str]]:
    layers = range(1, run.probe.depth + 2)
    return [(layer, name) for layer in layers for name in run.updates(layer, 1)]


def _why_stationary(judge: Judge, run: _Run) -> list[str]:
    updates = _first_updates(run)
    largest = judge.largest(name for _, name in updates)
    lead = "the start is a stationary point: every first update vanishes"
    if largest is None:
        return [lead]
    layer = next(layer for layer, name in updates if name == largest)
    where = "the output" if layer == run.probe.depth + 1 else "its preactivations"
    which = "the output layer" if layer == run.probe.depth + 1 else f"layer {layer}"
    fact = f"{lead}; the largest, of {which}, contributes {size(judge.order(largest))} to {where}"
    return [fact, *_vanishing(judge, run)]


def _vanishing(judge: Judge, run: _Run) -> list[str]:
    """Where the first pass vanishes, and whether that alone makes the first updates vanish."""
    query, depth = run.probe.query, run.probe.depth
    names = [f"h[{layer},0,{query}]" for layer in range(1, depth + 1)]
    small = [layer for layer, name in enumerate(names, 1) if judge.vanishes(name)]
    if not small:
        return []
    first = judge.order(names[small[0] - 1])
    fact = f"layer {small[0]}: its preactivations vanish at the start, h_0 is {size(first)}"
    if len(small) > 1:
        last = judge.order(names[small[-1] - 1])
        fact += f", down to {size(last)} in layer {small[-1]}"
    if _stationary(judge, run) and _caused(judge, run):
        fact += "; without this the first updates would not vanish"
    return [fact]


def _caused(judge: Judge, run: _Run) -> bool:
    """Whether the first updates lose no more than the sizes of the vectors that they are made of.

    The update of layer l contributes chi_0 <x_0^(l-1), x_1^(l-1)> dh_0^l times powers of n that the
    parameterization writes; x, and dh against the gradient at the last features, would be of order
    one if no layer made them smaller.
    """
    depth, query = run.probe.depth, run.probe.query

    def exponent(name: str) -> Ex | None:
        return judge.order(name).n

    top = exponent(f"dx[{depth},0,{START}]")
    for layer, name in _first_updates(run):
        if name.startswith("dB"):
            continue
        factors = [exponent(name)]
        if layer > 1:
            factors += [exponent(f"x[{layer - 1},{t},{i}]") for t, i in ((0, START), (1, query))]
        if layer <= depth:
            factors += [exponent(f"dh[{layer},0,{START}]")]
        if top is None or any(factor is None or factor.constant is None for factor in factors):
            return False
        own, *lost = (Fraction(f.constant) for f in factors if f is not None and f.constant is not None)
        back = top.constant if layer <= depth else Fraction(0)
        if back is None or own - sum(lost) + back < 0:
            return False
    return True


def _why_stuck(judge: Judge, run: _Run) -> list[str]:
    """The first layer whose updates never reach order one, where the start is not stationary."""
    for layer in range(1, run.probe.depth + 2):
        names = [n for t in range(1, run.probe.steps + 1) for n in run.updates(layer, t)]
        largest = judge.largest(names)
        if largest is None or not all(judge.vanishes(name) for name in names):
            continue
        exponent = size(judge.order(largest))
        which = "the output layer" if layer == run.probe.depth + 1 else f"layer {layer}"
        where = "the output" if layer == run.probe.depth + 1 else "its preactivations"
        return [f"{which}: its updates contribute {exponent} to {where}: they vanish"]
    return []


def _hidden_learning(judge: Judge, run: _Run) -> list[str]:
    """Layers whose features move although the verdict does not say so."""
    steps = range(1, run.probe.steps + 1)
    moving = [
        layer
        for layer in range(1, run.probe.depth + 1)
        if any(judge.is_exactly(name, 0) for t in steps for name in run.features(layer, t))
    ]
    if not moving:
        return []
    layers = ", ".join(str(layer) for layer in moving)
    word = "layer" if len(moving) == 1 else "layers"
    return [f"features move all the same in {word} {layers}"]


def _lasting(
    decided: Regime,
    architecture: MLP,
    parameterization: Parameterization,
    data: Samples,
    batch: int,
    loss: str,
    point: Mapping[str, Fraction],
) -> tuple[bool, tuple[str, ...]]:
    """Whether the verdict holds for all steps, and what to say of that."""
    if decided.verdict == "unstable":  # what has exploded stays so
        return True, ()
    if decided.verdict == "undecided":
        return False, ()
    depth = architecture.depth
    rates = [_rates(parameterization, depth, step) for step in range(RATES)]
    for length in LENGTHS:
        if any(row != rates[length] for row in rates[length - 1 :]):
            continue
        targets = _targets(data, (length + 1) * batch)
        run = probe(
            architecture,
            parameterization,
            targets,
            steps=length,
            loss=loss,
            batch=batch,
            query=_query(targets),
            watch=("h", "x", "dh", "dx"),
        )
        bound = later(run, point, (rates[length - 1], rates[length]))
        if bound is None:
            continue
        signs = {"trivial": bound.output, "kernel": bound.features}
        decisive = signs.get(decided.verdict, Fraction(-1))
        stable = bound.largest is None or bound.largest <= 0
        if not stable or not (decisive is None or decisive < 0):
            return False, ()
        if not point:
            return True, ()
        return False, ("at the sample point, the verdict holds for all t",)
    return False, ()


def _rates(parameterization: Parameterization, depth: int, step: int) -> tuple[object, object]:
    row = parameterization.exponents(depth, step)
    return row.c, row.bias_c


def _targets(data: Samples, rows: int) -> Samples:
    """Generic inputs with the targets of the data, one after the other."""
    inputs = tuple(INPUTS[row % len(INPUTS)] for row in range(rows))
    return Samples(inputs, tuple(data.targets[row % len(data)] for row in range(rows)))


def _status(decided: Regime) -> tuple[str, tuple[tuple[str, str], ...]]:
    """What the exact orders that decide rest on."""
    if decided.verdict == "undecided":
        return "bounds only", ()
    tested = tuple((name, why) for name, why in decided.used.items() if "particles" in why)
    return ("numerical" if tested else "exact"), tested


def _joined(first: Region, second: Region) -> Region:
    return Region(
        tuple(dict.fromkeys((*first.positive, *second.positive))),
        tuple(dict.fromkeys((*first.zero, *second.zero))),
    )


def _rows(found: Orders, names: list[str]) -> tuple[OrderRow, ...]:
    asked = set(names)
    return tuple(row for row in found.table.rows if row.name in asked)


def _output_names(run: _Run) -> list[str]:
    probe_run = run.probe
    names = list(probe_run.f(0))
    for step in range(1, probe_run.steps + 1):
        names += [*probe_run.f(step), *probe_run.changes(step)]
        names.append(probe_run.features(probe_run.depth, step))
    return names


def _names_of(parameterization: Parameterization, architecture: MLP) -> tuple[str, ...]:
    """The names of the catalogue that stand for the same network."""
    names = known_as(parameterization, architecture.depth, architecture.bias != "none")
    if not names:
        return ()
    gauge = " in another gauge" if parameterization.name == "abc" else ""
    return (f"at this depth it is the parameterization {', '.join(names)}{gauge}",)
