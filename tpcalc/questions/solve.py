"""``solve``: the learning rates, as powers of the width, at which layers learn most."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Unpack

from tpcalc import checks
from tpcalc.activations.entries import lookup as activation
from tpcalc.doors.numbers import count
from tpcalc.dsl.elementwise import expression
from tpcalc.errors import LimitError, ScaleError, UsageError
from tpcalc.evaluate.witness import nonzero
from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Call, Var
from tpcalc.functions.expr import substitute
from tpcalc.limit.scales import scales, symbols
from tpcalc.limit.series import NeedsMore
from tpcalc.networks.activation import Replaced, function_of, power_of
from tpcalc.networks.chain import chain_of
from tpcalc.networks.network import Architecture
from tpcalc.questions.depth.check import depth_check, facts
from tpcalc.questions.depth.found import Found
from tpcalc.questions.depth.rates import generic_block
from tpcalc.questions.depth.stream import stream
from tpcalc.questions.rates.bounded import Bounded, bounded, with_readout
from tpcalc.questions.rates.depths import in_depth
from tpcalc.questions.rates.fused import parts_of_rates
from tpcalc.questions.rates.unknowns import ASSUMED, SYMBOLIC, Rates, Run, sample_point
from tpcalc.questions.start.rates import stable_rates
from tpcalc.questions.verdict.probe import DEEP
from tpcalc.results import (
    Samples,
    Solution,
    SolvedParameter,
    SolvedStep,
    StableEdit,
    StableRate,
    Verdict,
)
from tpcalc.results.tables import provenance
from tpcalc.torch.network import Module
from tpcalc.torch.training import QuestionSettings, as_run
from tpcalc.training.optimizer_text import OutsideError
from tpcalc.training.parameterization import Exponents
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.training import Training

TRIALS = tuple(as_ex(Fraction(k, 4)) for k in range(0, 5))
LARGEST = "rates are those at which no first step grows, by bounds on sizes"
SOLVED = "gamma is solved for: the largest updates at which the stream does not grow"

SYMBOLS = ("p", "L")
DEEPER = Fraction(1, 2)


DEGREES = "relu^p is followed for p >= 1: below that it has no gradient at 0"


def solve(
    architecture: Architecture | Training,
    parameterization: Parameterization | str | None = None,
    data: Samples | None = None,
    *,
    symbolic: Sequence[str] = (),
    multipliers: bool = False,
    at: Mapping[str, object] | None = None,
    verify: bool = True,
    seed: int = 0,
    base: int | None = None,
    width: int | None = None,
    deep: int = DEEP,
    **settings: Unpack[QuestionSettings],
) -> Solution | Verdict:
    """The largest learning rates eta n^(-c_l(t)) at which outputs and features stay bounded.

    From the first layer and step on, each c_l(t) is chosen so that what the update of step t adds
    to layer l at step t + 1, (W^l(t+1) - W^l(t)) x^{l-1}, is Theta(1); or, where outputs or
    preactivations would then grow, so that they just do not, with a note of what binds. With
    symbols the first is given, and a note says that bounds were not checked. The powers a_l of the
    weights are those of the parameterization; its learning rates are not looked at, except that
    biases take the rate of their weights where it gives both the same powers. Of a network of L
    blocks it is the gamma of updates L^(-gamma), in a ``Verdict``.

    Args:
        architecture: The network; or a training run, ``tp.Training``, and nothing of it besides.
        parameterization: A catalogue name or a parameterization; its a_l may hold symbols.
        data: Training data; None: generic data.
        symbolic: What to keep as a symbol: ``"p"``, the power of ReLU; ``"L"``, the depth.
        multipliers: Whether the a_l are solved for as well: those of layers 1..L so that W^l x
            is Theta(1) at the start; a_{L+1}, unless it holds symbols, is the smallest at which the
            output stays bounded although every update contributes at order one.
        at: A sample point for the symbols, at which comparisons are decided. By default p = 7/3,
            a_1 = 1/10, a_l = 3/4, a_{L+1} = 14/13, with small differences between them.
        verify: Whether leading coefficients that are not provably different from 0 are tested at
            the sample point with the particle engine.
        seed: Of that test.
        base: The width at which rates were tuned.
        width: The one that they are wanted at: the largest rates have their factors from ``base``.
        deep: The most nodes of a program of all steps that is followed, of a network that is no
            chain of layers; of larger ones the largest rates alone are told.
        settings: As ``tp.Training`` takes them: steps (3; exponents are found for the steps
            0..T-1), loss, batch, optimizer, and factors of rates: lr, schedule, groups.

    Returns:
        The exponents with the region of the symbols where they hold; ``largest``, the largest rates
        of every parameter that are the same at all steps, by what a first step does (alone where
        powers step by step are not found); also those of the weights as
        they are stored, W = n^(-a) w: their size at the start and their learning rates.

    Raises:
        UsageError: Arguments that make no sense together.
        ScaleError: A layer to which no learning rate is known to give an update of order one.

    Source: Hajjar, Chizat, Giraud, Definition 3.2, Lemmas F.4 and H.4, Theorem 3.2.

    Example:
        >>> import tpcalc as tp
        >>> found = tp.solve(tp.MLP(3, "relu"), "naive-ip", steps=2, verify=False)
        >>> found.steps[0].c, found.steps[1].c
        (('-2', '-5/2', '-5/2', '-2'), ('-1', '-2', '-2', '-1'))
        >>> found = tp.solve(tp.MLP(2, "tanh"), "mup", steps=1, optimizer="adam", verify=False)
        >>> found.steps[0].c, [(own.role, own.b, own.c[0]) for own in found.stored]
        (('0', '1/2', '0'), [('input', '0', '0'), ('hidden', '1/2', '1'), ('readout', '1', '1')])
        >>> found = tp.solve(tp.MLP(2, "relu"), "ntk", steps=1, verify=False)
        >>> print(found.notes[1])
        layer 1 at step 0: its update contributes n^(-1/2); at c_1 = -1/2, where it would \
contribute order one, the output would grow like n^(1/2) at the next step
        >>> found = tp.solve(tp.MLP(2, "relu"), "naive-ip", symbolic="p", verify=False)
        >>> found.steps[0].c[0], found.region
        ('-1 - 1/2*p', ('1 + p > 0',))
    """
    started = time.perf_counter()
    training = as_run(architecture, parameterization, data, settings, steps=3)
    checks.whole(training.steps, "steps", least=1, hint="It counts updates.")
    if training.network.smallest.repeats:
        return depth_solve(training, checks.powers(at))
    kept = _kept(symbolic)
    checks.flag(multipliers, "multipliers")
    checks.flag(verify, "verify")
    network = training.network
    given = training
    if isinstance(network, Module):
        training = _freed(training)
    _check_open(training)
    training = training.replace(lr=Fraction(1), schedule=None)  # factors change no power
    run = Run(training, "multipliers" if multipliers else "rates")
    if "p" in kept:
        run = run.of(_with_power(network))
    if not (run.complete if "L" in kept else run.maps or run.biased):
        raise UsageError(
            f"learning rates are solved for weights that are "
            f"{'drawn and trained' if 'L' in kept else 'trained'}, not for those of "
            f"{network.words}.",
            hint="tp.check takes weights that start at 0 or are not trained.",
        )
    seed = checks.seed(seed)
    if "L" in kept:
        return in_depth(run, at, started)
    first, edits = ((), ()) if kept or multipliers else _first(given, at, _ratio(base, width))
    try:
        if first and chain_of(network) is None:
            _check_size(run, checks.whole(deep, "deep", least=0))
        found = _over_steps(run, network, at, kept, seed if verify else None, started)
        return replace(found, largest=first, edits=edits)
    except (ScaleError, OutsideError) as error:
        if not first or (chain_of(network) is not None and not training.beyond):
            raise
        notes = (LARGEST, f"rates step by step are not told: {error.message}")
        made = provenance(
            run.network.smallest.digest, seed, run.settings, time.perf_counter() - started
        )
        return Solution((), (), (), (), made, notes, largest=first, edits=edits)


def _check_size(run: Run, deep: int) -> None:
    """Refuse to follow a program of all steps that is large."""
    nodes = len(run.watched.program.nodes)
    if nodes > deep:
        raise ScaleError(
            f"the program of {count(run.steps, 'step')} has {nodes} nodes, more than deep={deep}."
        )


def _ratio(base: int | None, width: int | None) -> Fraction | None:
    """How much wider a network is than the one whose rates are known."""
    if base is None and width is None:
        return None
    if base is None or width is None:
        raise UsageError(
            f"{'base' if base is None else 'width'} is missing.",
            hint="Factors of rates go from the width base= to the width width=.",
        )
    return Fraction(
        *(checks.whole(n, what, least=1) for n, what in ((width, "width"), (base, "base")))
    )


def _first(
    training: Training, at: Mapping[str, object] | None, ratio: Fraction | None
) -> tuple[tuple[StableRate, ...], tuple[StableEdit, ...]]:
    """The largest rates by first steps, and edits; none where symbols have no numbers."""
    with suppress(ScaleError):
        return stable_rates(training, checks.powers(at), ratio)
    return (), ()


def _over_steps(
    run: Run,
    network: Architecture,
    at: Mapping[str, object] | None,
    kept: Sequence[str],
    seed: int | None,
    started: float,
) -> Solution:
    """Powers step by step, from a program of them all."""
    watched = run.watched
    program = watched.program
    unknowns = {unknown.symbol for unknown in (*run.unknowns(), run.readout)}
    given = checks.powers(at, symbols(program) - unknowns)
    point = sample_point(run, program, given)
    if point:
        stable = Bounded(run.derive(program, point))
    else:
        stable = bounded(run, watched, with_readout(run, watched) if run.with_readout else {})
    found = stable.rates
    notes = [_own_power(network, found) if "p" in kept else ""]
    notes.append(ASSUMED if seed is None else _tested(stable, point, seed))
    notes += [DEGREES if "p" in kept else "", SYMBOLIC if point else "", *stable.notes]
    notes += _left_out(run)
    notes += parts_of_rates(network, found)
    named = not all(label.isdigit() for label in run.maps) or len(run.maps) < len(run.written)
    depth = str(found.found.context.ranking.depth)
    return Solution(
        tuple(
            SolvedStep(
                step, _texts(found.weights(step).values()), _texts(found.biases(step).values())
            )
            for step in range(run.steps)
        ),
        found.found.region.lines,
        tuple((name, str(value)) for name, value in sorted(point.items())),
        tuple((u.letter, _text(found.value(u))) for u in found.unknowns if u.kind == "a"),
        provenance(
            program.digest,
            seed,
            {**run.settings, "depth": depth, "verify": str(seed is not None)},
            time.perf_counter() - started,
        ),
        tuple(note for note in notes if note),
        tuple(run.maps) if named else (),
        run.biased if named else (),
        tuple(
            SolvedParameter(mark.label, mark.role, "oo" if mark.at_zero else str(b), _texts(c))
            for mark, b, c in found.stored()
        ),
    )


def _kept(symbolic: Sequence[str]) -> tuple[str, ...]:
    names = checks.names(symbolic, "symbolic")
    for name in names:
        if name not in SYMBOLS:
            raise UsageError(
                f"symbolic names {name!r}.",
                hint="It takes 'p', the power of ReLU, and 'L', the depth. Powers of the width "
                "are symbols where the parameterization has them: 'ac:0,a,1;0'.",
            )
    return names


def _freed(training: Training) -> Training:
    """The run without the powers of rates that the optimizer of a module has."""
    groups = (
        replace(group, settings=tuple(own for own in group.settings if own[0] != "power"))
        for group in training.groups
    )
    return training.replace(groups=tuple(groups))


def _check_open(training: Training) -> None:
    """Check that the powers of all learning rates are free, and no rate is 0."""
    if 0 in training.factors:
        raise UsageError(
            f"the schedule is 0 at step {training.factors.index(0)}, where no power of the rate "
            "makes an update contribute.",
            hint="Leave the schedule out: its factors change no power of n.",
        )
    for group in training.groups:
        if "power" in dict(group.settings):
            raise UsageError(
                f"the powers of learning rates are solved for, and the group {group.pattern!r} "
                "has one.",
                hint="Leave it out; tp.check takes it.",
            )


def _texts(powers: Iterable[Ex | None]) -> tuple[str, ...]:
    return tuple(map(_text, powers))


def _text(power: Ex | None) -> str:
    return "any" if power is None else str(power)


def _left_out(run: Run) -> Iterator[str]:
    """Notes on what is not solved for."""
    if frozen := [label for label in run.written if label not in run.maps]:
        yield f"the weights of {', '.join(frozen)} are not trained"
    if idle := [unknown.words for unknown in run.unknowns() if unknown.symbol in run.idle]:
        yield f"0 at any rate, as something starts at 0: the updates of {'; '.join(idle)}"


def _with_power(network: Architecture, power: str = "p") -> Architecture:
    """The same network with relu^p for a power of ReLU."""
    found = function_of(network)
    if found is None:
        raise UsageError(
            f"p stands for the power of an activation relu^p, and the layers of {network.words} do "
            "not share one activation.",
            hint="Leave p out.",
        )
    if power_of(network) is None or not isinstance(found, Call):
        name = found.atom.text if isinstance(found, Call) else found.text
        degree = found.atom.facts.homogeneity if isinstance(found, Call) else None
        raise UsageError(
            f"p stands for the power of an activation relu^p, and {name} is none: the degree of "
            f"homogeneity of {name} is {'none' if degree is None else degree}.",
            hint="Take relu or relu^2, or leave p out.",
        )
    function = expression(activation(f"relu^{power}"), "an activation")
    return Replaced(network, substitute(function, {Var(0): found.arg}))


def _own_power(network: Architecture, rates: Rates) -> str:
    """A note where the formulas do not hold for the power that was given."""
    power = power_of(network)
    own = None if power is None else power.constant
    if own is None:
        return ""
    point = {**rates.found.context.ranking.chamber.point, "p": own}
    if rates.found.region.contains(point):
        return ""
    return f"the formulas do not hold at p = {own}, the power of the activation that was given"


def _at_point(run: Run, point: Mapping[str, Fraction]) -> Run:
    """The same training run with numbers for all symbols but the unknowns."""

    def number(powers: Sequence[Ex]) -> tuple[Ex, ...]:
        return tuple(as_ex(power.at(point)) for power in powers)

    def table(depth: int, step: int) -> Exponents:
        found = run.parameterization.exponents(depth, step)
        return replace(found, a=number(found.a), bias_a=number(found.bias_a))

    power = power_of(run.network)
    network = run.network
    if power is not None and power.symbols:
        network = _with_power(network, str(power.at(point)))
    exponents = replace(run.parameterization, rule=table, entrywise=table)
    training = run.training.replace(network=network, parameterization=exponents)
    return replace(run, training=training)


def _tested(stable: Bounded, point: Mapping[str, Fraction], seed: int) -> str:
    """A note on a second derivation, with numbers and more terms, and a test of its leads."""
    rates = stable.rates
    run, region = rates.run, rates.found.region
    degrees = _degrees(run.network)
    ones = {**point, **dict.fromkeys(degrees, Fraction(1))}
    place = ones if region.contains(ones) else point  # high powers are hard to average
    program = (_at_point(run, place) if place else run).program()
    asked = [unknown for unknown in rates.unknowns if unknown.symbol not in run.idle]
    values = {symbol: power.at(place) for symbol, power in rates.found.solved.items()}
    depth = rates.found.context.ranking.depth + DEEPER
    try:
        found = scales(program, values=values, depth=depth)
        sizes = {u: found.scale(u.output) for u in asked}
        doubtful = [s.node for s in sizes.values() if s.node is not None and not s.certain]
        tests = nonzero(found.context, doubtful, seed)
    except (NeedsMore, ScaleError, LimitError):
        return ASSUMED
    known = {u: size for u, size in sizes.items() if not size.bound}
    for unknown, size in known.items():
        if size.power != stable.sizes.get(unknown.symbol, 0) and unknown != run.readout:
            shown = "0" if size.power is None else f"n^({size.power})"
            return (
                f"with more terms {unknown.subject}, of {unknown.words}, is {shown}, not what was "
                "solved for: what leads at first is 0"
            )
    form = sum(size.certain for size in known.values())
    tested = sum(bool(tests[s.node].nonzero) for s in known.values() if s.node in tests)
    at = ", ".join(f"{name} = {value}" for name, value in sorted(place.items()))
    left = len(sizes) - form - tested
    return (
        f"of {len(sizes)} leading coefficients, {form} are not 0 by their form and {tested} by a "
        "test with the particle engine"
        + (f" at {at}" if at else "")
        + (f"; of {left} this is assumed" if left else "")
    )


def _degrees(network: Architecture) -> frozenset[str]:
    """The symbols in the power of the activation."""
    power = power_of(network)
    return frozenset() if power is None else power.symbols


def depth_solve(training: Training, at: Mapping[str, Fraction]) -> Verdict:
    """The verdict at the gamma that makes the sum of all updates of order one.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, Claim 7.2.
    """
    bare = replace(training.parameterization, deep=None)  # its gamma is what is asked for
    training = training.replace(network=training.network, parameterization=bare)
    one = training.replace(steps=1)
    for trial in TRIALS:
        gamma = _moving(one.replace(lr_depth=trial), trial, at)
        if gamma is not None:
            found = depth_check(training.replace(lr_depth=gamma), at)
            return replace(found, notes=(SOLVED, *found.notes))
    raise ScaleError(
        "no gamma is known at which the updates of the blocks move the stream.",
        where=training.network.name,
        hint="tp.check says what the blocks do at the start.",
    )


def _moving(training: Training, gamma: Ex, at: Mapping[str, Fraction]) -> Ex | None:
    """The gamma at which the largest push of a first update is of order one, from a trial."""
    generic, rates = generic_block(training, at)
    found = Found(stream(generic, at), rates)
    if found.stable_start is False or found.flow:  # training of such blocks is not followed
        raise ScaleError(f"{'; '.join(facts(found))}.", where=training.network.name)
    pushes = [power for _, power in found.moved("x")]
    if not pushes:
        return None
    return gamma - min(pushes, key=found.stream.chamber.at)
