"""``check``: what becomes of training at infinite width, read off the program of a training run.

Nothing but the exponents that the program derives is looked at: no name of a parameterization and
no table of known verdicts. A name that is recognised becomes a note, after the verdict.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Unpack

from tpcalc import checks
from tpcalc.doors.numbers import count
from tpcalc.errors import ProgramError, ScaleError, UsageError
from tpcalc.evaluate.settle import Witness
from tpcalc.exponents import Ex, as_ex
from tpcalc.exponents.chamber import joined
from tpcalc.functions import Call, Expr, Var
from tpcalc.functions.expr import Pow, walk
from tpcalc.limit.scales import symbols
from tpcalc.networks.chain import Chain, chain_of
from tpcalc.networks.network import Architecture
from tpcalc.program.family import Mark
from tpcalc.program.types import ReadAs
from tpcalc.questions.depth.check import depth_check
from tpcalc.questions.first_order import FirstLine, first_order_of
from tpcalc.questions.rates.fused import parts_of_groups, parts_of_run
from tpcalc.questions.start.attained import WIDTHS
from tpcalc.questions.verdict.contributions import Contributions
from tpcalc.questions.verdict.facts import explosion, initial, is_stationary, layer_facts, reasons
from tpcalc.questions.verdict.judge import Judgement, Settled, decide, judge
from tpcalc.questions.verdict.probe import DEEP, FAR, Large, Probe, probe, watched
from tpcalc.questions.verdict.stationary import Later, later
from tpcalc.results import FirstOrder, Provenance, Samples, Verdict
from tpcalc.results.tables import provenance
from tpcalc.torch.training import QuestionSettings, as_run
from tpcalc.training.generic import far_query, generic_data, same_targets
from tpcalc.training.parameterization import exponent
from tpcalc.training.parameterizations import REGISTRY, Parameterization
from tpcalc.training.training import Training

STEPS = 8  # tables of the catalogue change after step 0 only; written ones have a row for each step
LENGTHS = (4, 6)  # steps that are followed for a table that repeats
RATES = 16  # steps for which learning rates are looked at
ALL = "all t"
FIVE = {  # what the words of first steps are called where later steps stay undecided
    "unstable at the start": "unstable",
    "unstable": "unstable",
    "output grows": "unstable",
    "trivial": "trivial",
    "kernel": "kernel",
    "feature learning": "feature-learning",
}
FACTOR = Fraction(89, 144)  # of rates, where it does not matter: no decay that is met ends with it
GENTLE = Fraction(1, 4)  # where a rate above it leaves a verdict open, this share of it may tell
GENTLER = "decided at a learning rate of {rate}, as samples at {lr} are too wild to tell"
GENERIC = "the data are generic: no two inputs are orthogonal"
NOT_ASKED = "all steps: not asked: {}"
NOT_DEEP = "the program of {} has {} nodes, and is not followed: deep={} is less"
UNNUMBERED = "first steps are followed where all exponents are numbers: at= gives them"
STILL = "the schedule is 0 at step {}: nothing is updated there"
SAME_RATES = f"all t: if learning-rate exponents after step {RATES - 1} are as before it"


def check(
    architecture: Architecture | Training,
    parameterization: Parameterization | str | None = None,
    data: Samples | None = None,
    *,
    at: Mapping[str, object] | None = None,
    verify: bool = True,
    seed: int = 0,
    reading: ReadAs = "auto",
    deep: int = DEEP,
    **settings: Unpack[QuestionSettings],
) -> Verdict:
    """Whether training is trivial, unstable, in the kernel regime, or learns features.

    Of a network of L blocks (``ResNet("L", ...)``) the answer is about the depth (``at``), with
    powers of L, of the stream and of the updates of a block. Of no steps, and of matrices that are
    correlated along the depth where no ``lr_depth`` says how updates depend on L, it is about the
    start: identity, explosion (unstable) or between (stationary), with the power of 1/L in front
    of a block that would be.

    Unstable: h or f explodes; later steps are not followed. Trivial: the outputs do not move.
    Kernel: they move, the features of the last layer do not. Feature learning: both move. All of it
    at an input that is no training sample. ``valid_for`` says ``"all t"`` where the orders of later
    steps are known to repeat those of a step that was followed, with learning-rate exponents that
    no longer change, or where no later step can change the verdict.

    Args:
        architecture: The network; or a training run, ``tp.Training``, and nothing of it besides.
        parameterization: A catalogue name or a parameterization.
        data: Training data; None: generic data, no two inputs orthogonal.
        at: A sample point for symbols in the exponents: the verdict holds on a region around it.
        verify: Whether leading coefficients are tested with the particle engine where their form
            does not show that they are not 0; else the verdict assumes that they are not, and
            says so.
        seed: Of that test.
        reading: ``"blocks"`` or ``"cells"``, as for ``tp.orders``.
        deep: The most nodes of a program of all steps that is followed where first steps decide;
            0: first steps alone.
        settings: As ``tp.Training`` takes them: steps (3), lr, schedule, groups, loss, batch,
            optimizer. Where the rate leaves the verdict open, as samples of large updates are
            wild, a quarter of it is tried, and a note says so.

    Returns:
        The verdict with the facts that decide it, layer by layer.

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UnknownName: No such parameterization, loss or optimizer.
        UsageError: A network that shares weights between layers.
        ScaleError: A symbol without a value.

    Source: Yang and Hu, Feature learning in infinite-width neural networks, section 3; Hajjar,
        Chizat, Giraud, Proposition 3.1 and Definitions B.1 and B.2.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = check(MLP(3, "relu"), "naive-ip", steps=1)
        >>> found.verdict, found.stationary_start, found.initial, found.valid_for
        ('trivial', True, 'vanishes', 'all t')
        >>> print(found.facts[1])
        layer 2: its preactivations vanish at the start, h_0 is n^(-1/2), down to n^(-1) in \
layer 3; without this the first updates would not vanish
    """
    training = as_run(architecture, parameterization, data, settings, steps=3)
    if training.network.smallest.repeats:
        return _in_depth(training, checks.powers(at), seed, verify)
    return width_check(training, at=at, verify=verify, seed=seed, reading=reading, deep=deep)


def width_check(
    training: Training,
    *,
    at: Mapping[str, object] | None = None,
    verify: bool = True,
    seed: int = 0,
    reading: ReadAs = "auto",
    deep: int = DEEP,
) -> Verdict:
    """The same of a run of a network whose depth is a number."""
    started = time.perf_counter()
    steps = checks.whole(training.steps, "steps", least=1, hint="It counts updates.")
    checks.flag(verify, "verify")
    seed = checks.seed(seed)
    deep = checks.whole(deep, "deep", least=0, hint="It counts the nodes that are followed.")
    written, beyond = _written(training, reading, deep)
    if written is None:
        return _by_first(training, checks.powers(at), seed, verify, NOT_ASKED.format(beyond))
    point = checks.powers(at, symbols(written.program))
    line = FirstLine(training, point, seed, verify)
    first, large = _by_line(line, written, deep), isinstance(written, Large)
    known = _is_known(first)
    least = deep if known or not deep else max(deep, FAR)
    if first is not None and written.nodes > least:
        asked, seconds = {"verify": str(verify), "deep": str(deep)}, time.perf_counter() - started
        made = provenance(written.program.digest, seed, asked, seconds)
        nodes = f"{'more than ' * large}{written.nodes}"
        return _alone(first, steps, made, NOT_DEEP.format(count(steps, "step"), nodes, deep))
    run, beyond = _written(training, reading) if large else (written, "")
    if not isinstance(run, Probe):
        return _by_first(training, point, seed, verify, NOT_ASKED.format(beyond))
    settled = Settled(run, point, Witness(seed) if verify else None)
    # What the verdict does not need makes no comparisons: its region is as large as can be.
    alone = decide(run, at=point, verify=verify, seed=seed) if point else None
    decided = alone or judge(run, settled.ledger.ask)
    if decided.verdict == "undecided" and not known:
        first = line.found(WIDTHS)
        known = _is_known(first)
    lr = training.lr
    wild = decided.verdict == "undecided" and verify and not known
    if wild and not callable(lr) and lr > GENTLE:
        gentler = width_check(training.replace(lr=lr * GENTLE), at=at, seed=seed, reading=reading)
        if gentler.verdict != "undecided":
            note = GENTLER.format(rate=lr * GENTLE, lr=lr)
            return replace(gentler, notes=(*gentler.notes, note))
    return _told(training, decided, settled, first, seed, started)


def _told(
    training: Training,
    decided: Judgement,
    settled: Settled,
    first: FirstOrder | None,
    seed: int,
    started: float,
) -> Verdict:
    """What a judgement makes known, layer by layer."""
    run, sizes, point = settled.run, settled.sizes, settled.point
    bound, exploded = _lasting(decided, training, point), explosion(decided, run)
    if exploded is not None:
        run = replace(run, last=exploded.step)
    of = Contributions(training, run, settled, sizes.chamber)
    facts = reasons(decided, settled.moves, sizes, run)
    layers = tuple(
        layer_facts(settled.moves, sizes, run, label, (of.word(label), of.word(label, bias=True)))
        for label in run.maps
    )
    optimizer = tuple(of.notes())
    updates = (n for t in run.followed for label in run.maps for n in run.updates(label, t))
    verdict, status, facts = _word(decided, first, facts)
    asked = {"verify": str(settled.tests is not None), "depth": str(settled.ledger.depth)}
    return Verdict(
        verdict,
        status,
        facts,
        training.steps,
        provenance(run.program.digest, seed, asked, time.perf_counter() - started),
        valid_for=ALL if bound and not point else f"t<={training.steps}",
        region=joined((decided.region, settled.ledger.region, sizes.chamber.region)).lines,
        notes=(
            *meant_for(training.parameterization, training.network),
            *(() if training.groups else _names_of(training.parameterization, training.network)),
            *(() if first else (UNNUMBERED,)),
            *parts_of_run(training.network, run, sizes),
            *parts_of_groups(training),
            *(("at the sample point the verdict holds for all t",) if bound and point else ()),
            *((SAME_RATES,) if bound and exploded is None else ()),
            *decided.notes,
            *optimizer,
            *((GENERIC,) if training.data is None else ()),
            *(STILL.format(step) for step, factor in enumerate(training.factors) if not factor),
            *settled.ledger.explosions,
        ),
        initial=initial(decided, sizes, run),
        stationary_start=is_stationary(sizes, run),
        layers=layers,
        updates=sizes.rows(updates),
        rows=sizes.rows(run.outcomes),
        exploded=exploded,
        first_order=first,
        **decided.answers,
    )


def _word(
    decided: Judgement, first: FirstOrder | None, facts: tuple[str, ...]
) -> tuple[str, str, tuple[str, ...]]:
    """The word with what it rests on; where it is open that of first steps, if these are sure."""
    if decided.verdict == "undecided" and first is not None and _is_known(first):
        word = FIVE.get(first.word)
        if word is not None:
            return word, f"first steps, {first.status}", (*first.facts, *facts)
    return decided.verdict, _status(decided), facts


def _alone(first: FirstOrder, steps: int, made: Provenance, note: str) -> Verdict:
    """The verdict of first steps."""
    word = FIVE.get(first.word, "undecided") if _is_known(first) else "undecided"
    return Verdict(
        word,
        f"first steps, {first.status}",
        first.facts,
        steps,
        made,
        valid_for="t<=1",
        notes=(note,),
        initial="explodes" if first.word == "unstable at the start" else "ok",
        stationary_start=first.word == "trivial",
        first_order=first,
    )


def _in_depth(
    training: Training, values: Mapping[str, Fraction], seed: int, verify: bool
) -> Verdict:
    """The verdict on the depth, with first steps in the width; theirs where there is no limit."""
    first = None
    if training.steps:
        with suppress(UsageError):  # what is correlated along the depth and fades
            first = FirstLine(training, values, seed, verify).found()
    try:
        found = depth_check(training, values)
    except ScaleError as error:
        if first is None or not _is_known(first) or FIVE.get(first.word) != "unstable":
            raise
        return _alone(first, training.steps, first.provenance, error.message)
    return replace(found, first_order=first if found.steps else None)


def _written(
    training: Training, reading: ReadAs, deep: float = inf
) -> tuple[Probe | Large | None, str]:
    """The program of all steps, how large it is where it is not to be followed, or why not."""
    if training.beyond:
        return None, training.beyond
    try:
        return watched(training, reading, deep), ""
    except Large as large:
        return large, ""
    except ProgramError as error:
        return None, error.message


def _by_first(
    training: Training, point: Mapping[str, Fraction], seed: int, verify: bool, note: str
) -> Verdict:
    """The verdict of a run of which first steps alone are followed."""
    tests = Witness(seed) if verify else None
    first = first_order_of(training, point, WIDTHS, seed, tests)
    return _alone(first, training.steps, first.provenance, note)


def _by_line(line: FirstLine, written: Probe | Large, deep: int) -> FirstOrder | None:
    """First steps, with networks of finite width only where neither line has a word without."""
    if isinstance(written, Large) and written.nodes > DEEP:  # samples do not settle it
        return line.found(WIDTHS)
    first = line.found()
    return line.found(WIDTHS) if written.nodes > deep and not _is_known(first) else first


def _is_known(first: FirstOrder | None) -> bool:
    """Whether the word of first steps is no bound."""
    return first is not None and first.status in ("exact", "measured")


def _lasting(decided: Judgement, training: Training, point: Mapping[str, Fraction]) -> bool:
    """Whether the verdict is known for all steps."""
    if decided.verdict == "unstable":  # what has exploded stays so
        return True
    marks, tokens = training.network.marks, training.network.tokens
    optimizers = [training.optimizer_of(mark) for mark in marks]
    if decided.verdict == "undecided" or not all(each.is_lasting for each in optimizers):
        return False
    every = training.replace(steps=RATES, lr=FACTOR, schedule=None)
    rates = [tuple(every.rate(mark, step)[1] for mark in marks) for step in range(RATES)]
    kept = [row.kept for row in every.tables[:RATES]]
    data = generic_data(training)
    for length in LENGTHS:
        later_rows = range(length - 1, RATES)
        if any((rates[t], kept[t]) != (rates[length], kept[length]) for t in later_rows):
            continue
        # One sample a step: a sum has the bound of its terms, which are alike for all samples.
        # Factors in front of rates are left out: a bound does not feel them.
        samples = same_targets(data, length + 1, tokens)
        longer = training.replace(data=samples, steps=length, batch=1, lr=FACTOR, schedule=None)
        if not all(_is_typical(longer, mark, point) for mark in marks):
            return False
        run = probe(longer, query=far_query(samples), watch=("h", "x", "dh", "dx"))
        if any(role != "readout" and label not in run.features for label, role in run.maps.items()):
            return False  # bounds repeat where the vectors that updates are made of are among them
        bound = later(run, point, (rates[length - 1], rates[length]))
        if bound is not None:
            return _agrees(decided.verdict, bound)
    return False


def _is_typical(run: Training, mark: Mark, point: Mapping[str, Fraction]) -> bool:
    """Whether the path of a parameter at the steps of a run shows all that it has at later ones.

    Every gradient so far stands in it, and what decay leaves of the start does not grow, and is
    neither 0 nor all of it by accident.
    """
    path, zero = run.path(mark), as_ex(0)
    rates = [run.rate(mark, step) for step in range(run.steps)]
    if path is None or not rates[0][0]:
        return True
    found = [path(rates[: step + 1]) for step in range(run.steps)]
    first = dict(found[0].start).get(zero)
    for step, now in enumerate(found):
        used = {part.index for _, psi in now.moves for part in walk(psi) if isinstance(part, Var)}
        powers = dict(now.start)
        if used != set(range(step + 1)) or any(power.at(point) > 0 for power in powers):
            return False
        if (powers.get(zero) != 1) if first == 1 else (powers.get(zero, 0) in (0, 1)):
            return False
    return True


def _agrees(verdict: str, bound: Later) -> bool:
    """Whether bounds for all steps are what the verdict says of them."""

    def below(power: Fraction | None, most: Fraction) -> bool:
        return power is None or power < most

    stable = bound.largest is None or bound.largest <= 0
    if verdict == "trivial":
        return stable and below(bound.output, Fraction(0))
    return stable and (verdict != "kernel" or below(bound.features, Fraction(0)))


def _status(decided: Judgement) -> str:
    """What the answers that decide rest on."""
    if decided.verdict == "undecided":
        return "bounds only"
    if decided.assumed:
        return "assumed"
    reasons = [answer.order.reason for answer in decided.deciding if answer.holds]
    return "numerical" if any("particles" in why for why in reasons) else "exact"


def _names_of(parameterization: Parameterization, architecture: Architecture) -> tuple[str, ...]:
    """The names of the catalogue that stand for the same network."""
    names = known_as(parameterization, architecture.hidden, architecture.biased)
    if not names:
        return ()
    gauge = ", in another gauge" if parameterization.name == "abc" else ""
    return (f"at this depth it is the parameterization {' or '.join(names)}{gauge}",)


def known_as(parameterization: Parameterization, depth: int, biases: bool = False) -> list[str]:
    """Other names of the catalogue under which a network of this depth is the same.

    Example:
        >>> from tpcalc.training.parameterizations import lookup
        >>> known_as(lookup("abc:-1/2,0,1/2;1/2,1/2,1/2;0,0,0"), 3)
        ['mup']
    """

    def tables(parameterization: Parameterization) -> list[tuple[object, ...]]:
        rows = [parameterization.exponents(depth, step) for step in range(STEPS)]
        return [
            (
                row.a,
                row.c,
                tuple(row.mean) if any(row.mean) else (),
                row.kept or (Ex(),) * len(row.a),
                (row.bias_a, row.bias_c) if biases else None,
            )
            for row in rows
        ]

    if parameterization.own is not None or parameterization.deep is not None:
        return []
    own = tables(parameterization)
    names = []
    for name, family in REGISTRY.items():
        # In the width those of the depth are muP; their powers of L are no rescaling of it.
        if (
            family.own is not None
            or family.deep is not None
            or any(argument.required for argument in family.parameters)
        ):
            continue
        other, degree = family(), parameterization.degree
        if degree == 0 and other.entrywise is None:
            continue
        if name != parameterization.name and tables(other.under(degree)) == own:
            names.append(name)
    return names


def meant_for(parameterization: Parameterization, architecture: Architecture) -> tuple[str, ...]:
    """What a reader may have forgotten: the degree p of ip-llr, biases.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> from tpcalc.training.parameterizations import lookup
        >>> print(*meant_for(lookup("ip-llr"), MLP(3, "relu^2", bias="first")))
        ip-llr has p = 1 here, and the activation is homogeneous of degree 2: the first learning \
rates gamma_l(p) are meant with p = 2, which is ip-llr:2
    """
    network = chain_of(architecture)
    if network is None or network.skips:
        return ()
    return (*_degree(parameterization, network), *_biases(parameterization, network))


def _degree(parameterization: Parameterization, network: Chain) -> Iterator[str]:
    degree = _homogeneity(network.activation)
    if parameterization.name != "ip-llr" or degree is None:
        return
    own = exponent(dict(parameterization.values).get("p", 1), what="p of ip-llr")
    power = as_ex(degree)
    if power != own and power != as_ex(0):
        yield (
            f"ip-llr has p = {own} here, and the activation is homogeneous of degree {power}: the "
            f"first learning rates gamma_l(p) are meant with p = {power}, which is ip-llr:{power}"
        )


def _homogeneity(found: Expr | None) -> Ex | Fraction | None:
    """The degree of homogeneity of an activation that is one function, or a power."""
    match found:
        case Call(atom=atom, arg=Var()):
            degree = atom.facts.homogeneity
            return degree if isinstance(degree, Ex | Fraction) else None
        case Pow(base=Var(), exponent=power):
            return power
        case Var():
            return Fraction(1)
    return None


def _biases(parameterization: Parameterization, network: Chain) -> Iterator[str]:
    if parameterization.biases == "first" and max(network.biased, default=1) > 1:
        yield (
            f"{parameterization.name} is defined with biases in the first layer alone "
            "(bias 'first'); this network has them above it as well"
        )
    if parameterization.name == "ip-bias" and not network.biased:
        yield "ip-bias is defined with biases in all layers (bias 'all'); this network has none"
