"""``equivalent``: whether two programs compute the same, at finite width and in the limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from math import sqrt

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.dsl import filled
from tpcalc.errors import EvaluationError, LimitError, ScaleError, UsageError
from tpcalc.evaluate.limit import limit
from tpcalc.evaluate.settle import Witness
from tpcalc.finite.simulate import simulate
from tpcalc.finite.statistics import slope
from tpcalc.finite.widths import check_widths
from tpcalc.limit.derive import derive
from tpcalc.limit.same import Sameness, same_targets
from tpcalc.passes.split import split
from tpcalc.program.program import Program, restricted
from tpcalc.results import Equivalence, EquivalenceRow, Estimate, FiniteTable, SlopeRow
from tpcalc.results.dependencies import LimitRelation
from tpcalc.results.tables import provenance
from tpcalc.training.generic import generic_data
from tpcalc.training.training import Training

Pair = Callable[[int, int], tuple[Program, Program]]
Values = Array

# Relative to the size of the output: far above what rounding does to programs of a few thousand
# operations, far below any power of a width that could be tried.
ROUNDING = 1e-9
Z = 5.0
WORDS: dict[Sameness, LimitRelation] = {
    "same": "same graph",
    "both 0": "both 0",
    "another power": "another power",
}
DRAWN_IN_ORDER = (
    "torch is not installed: networks are drawn product by product, in the order of each program, "
    "so that a difference may come from another order of the same products; equality is equality."
)


def equivalent(
    first: Program | Training,
    second: Program | Training,
    *,
    outputs: Sequence[str] | None = None,
    widths: Sequence[int] = (64, 128, 256),
    seeds: int = 4,
    samples: int | None = None,
    seed: int = 0,
    at_width: Pair | None = None,
) -> Equivalence:
    """Whether two programs are the same network.

    At finite width both are run with the same initial weights: inputs and matrices of one name
    have the same entries. In the limit the two graphs of random variables are compared term by
    term; where that does not show them equal, both limits are computed with independent errors: of
    a vector E Z and E Z^2, which more than one law may have.

    Args:
        first: A program; or a training run, on generic data where it has none: two recipes, of
            modules too, whose multipliers, inits and rates differ by a gauge, are one program.
        second: Another, whose inputs and outputs have the same names where they are meant to be
            the same.
        outputs: Which outputs are compared; None: all that both have.
        widths: Widths of the networks, three or more for a slope; empty: none are run.
        seeds: Networks at each width.
        samples: Particles behind a limit that has to be computed so.
        seed: Of the networks and of the limits.
        at_width: ``at_width(width, seed)``: the two programs to run in place of these, where
            they depend on the network (a learning rate corrected by its first outputs).

    Returns:
        A row for each output. ``at_finite_width`` and ``in_the_limit`` sum them up.

    Raises:
        UsageError: Something that is no program, or no output that both have.
        EvaluationError: Networks of a width leave the floating-point range.

    Source: Hajjar, Chizat, Giraud, Proposition 4.1 and Theorem 4.2, for the kinds of sameness.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> from tpcalc.training.training import train
        >>> from tpcalc.results import Samples
        >>> data = Samples(((1.0, 0.5),), ((0.0,),))
        >>> def made(name):
        ...     net = MLP(3, "relu", bias="first")
        ...     return train(net, name, data, steps=1, lr=4, loss="linear", watch=())
        >>> found = equivalent(made("ip-llr"), made("hp"), widths=(16, 32), seeds=2)
        >>> found["f[1,0]"].equal, found["f[0,0]"].equal, found.in_the_limit
        (True, False, 'same graph')
    """
    started = time.perf_counter()
    left, right = (split(filled(_written(one))) for one in (first, second))
    seed = checks.seed(seed)
    seeds = checks.whole(seeds, "seeds", least=1)
    checks.called(at_width, "at_width", 64, 0, hint="It takes a width and a seed.")
    outputs = None if outputs is None else checks.names(outputs, "outputs")
    widths = checks.sequence(widths, "widths")
    widths = check_widths(widths) if widths else ()
    names = _shared(left, right, outputs)
    left, right = restricted(left, names), restricted(right, names)
    notes: list[str] = []
    gaps: Mapping[str, dict[int, Values]] = {}
    if widths:
        if find_spec("torch") is None:
            notes.append(DRAWN_IN_ORDER)
        gaps = _gaps(at_width or (lambda width, number: (left, right)), widths, seeds, seed, names)
    relations, numbers = _limits(left, right, names, samples, seed, notes)
    rows = tuple(
        _row(name, gaps.get(name, {}), relations[name], numbers.get(name)) for name in names
    )
    settings = {"widths": ",".join(map(str, widths)), "seeds": str(seeds)}
    made = provenance(left.digest, seed, settings, time.perf_counter() - started)
    return Equivalence(rows, tuple(widths), seeds if widths else 0, made, tuple(notes))


def _written(of: Program | Training) -> Program:
    """A program, or that of a training run."""
    if isinstance(of, Training):
        return of.replace(data=generic_data(of)).program
    return of


def _shared(left: Program, right: Program, asked: Sequence[str] | None) -> list[str]:
    both = [name for name, _ in left.outputs if name in dict(right.outputs)]
    if asked is None:
        if not both:
            raise UsageError(
                "the two programs have no output of the same name.",
                hint="Name the outputs that are to be compared alike.",
            )
        return both
    lacking = [name for name in asked if name not in both]
    if lacking or not asked:
        raise UsageError(
            f"{', '.join(lacking) or 'no output'} is not an output of both programs.",
            hint=f"Both have {', '.join(both) or 'none'}.",
        )
    return list(asked)


def _gaps(
    pair: Pair, widths: Sequence[int], seeds: int, seed: int, names: Sequence[str]
) -> dict[str, dict[int, Values]]:
    """For each output and width the relative differences of the networks."""
    backend = "lazy" if find_spec("torch") is None else "dense"
    found: dict[str, dict[int, Values]] = {name: {} for name in names}
    for width in widths:
        sides: list[list[FiniteTable]] = [[], []]
        for number in range(seed, seed + seeds):
            for side, program in zip(sides, pair(width, number), strict=True):
                made = restricted(program, names)
                side.append(simulate(made, (width,), 1, seed=number, backend=backend))
                lost = sorted(set(names) - {row.name for row in side[-1].rows})
                if lost:
                    raise EvaluationError(
                        f"{lost[0]} of a network of width {width} leaves the floating-point range.",
                        hint="Take other data, smaller learning rates, or fewer steps.",
                    )
        left, right = (_by_name(tables) for tables in sides)
        for name in names:
            found[name][width] = _relative(left[name], right[name])
    return found


def _by_name(tables: Sequence[FiniteTable]) -> dict[str, dict[str, Values]]:
    """For each output and statistic its values over the networks."""
    found: dict[str, dict[str, Values]] = {}
    for row in (row for table in tables for row in table.rows):
        own = found.setdefault(row.name, {})
        own[row.statistic] = np.append(own.get(row.statistic, np.empty(0)), row.values)
    return found


def _relative(left: Mapping[str, Values], right: Mapping[str, Values]) -> Values:
    """The largest difference of each network, relative to the size over all of them."""
    gaps = []
    for statistic, mine in left.items():
        other = right[statistic]
        sizes = (mine, other)
        if statistic == "mean":  # of a vector: its size is that of its coordinates
            sizes = (np.sqrt(left["second_moment"]), np.sqrt(right["second_moment"]))
        size = max(float(np.sqrt(np.mean(part**2))) for part in sizes)
        gaps.append(np.abs(mine - other) / size if size > 0 else np.abs(mine - other))
    largest: Values = np.max(gaps, axis=0)
    return largest


def _limits(
    left: Program,
    right: Program,
    names: Sequence[str],
    samples: int | None,
    seed: int,
    notes: list[str],
) -> tuple[dict[str, LimitRelation], dict[str, tuple[Estimate, Estimate]]]:
    """What is known of the limits, and the numbers where the graphs do not show it."""
    shown = _shown(left, right, names, notes)
    relations: dict[str, LimitRelation] = {
        name: "not compared" for name in names if name not in shown
    }
    relations |= {name: WORDS[found] for name, found in shown.items() if found in WORDS}
    rest = [name for name in names if name not in relations]
    numbers: dict[str, tuple[Estimate, Estimate]] = {}
    if rest:
        sides = [
            limit(restricted(program, rest), samples=samples, seed=number)
            for program, number in ((left, seed), (right, seed + 1))
        ]
        for name in rest:
            numbers[name] = _numbers(*(side[name] for side in sides))
            relations[name] = _related(name, *numbers[name], notes)
    return relations, numbers


def _shown(
    left: Program, right: Program, names: Sequence[str], notes: list[str]
) -> dict[str, Sameness]:
    """What the limit graphs show; outputs of which one has no limit here are left out."""
    try:
        return same_targets(
            derive(left, trial=Witness(0).claims), derive(right, trial=Witness(0).claims)
        )
    except (LimitError, ScaleError) as error:
        if len(names) == 1:
            notes.append(f"The limits of {names[0]} are not compared: {error}")
            return {}
    found: dict[str, Sameness] = {}
    for name in names:
        found |= _shown(restricted(left, [name]), restricted(right, [name]), [name], notes)
    return found


def _numbers(left: object, right: object) -> tuple[Estimate, Estimate]:
    """A scalar of both; of a vector E Z^2, or E Z where that is further apart."""
    if isinstance(left, Estimate) and isinstance(right, Estimate):
        return left, right
    pairs = [
        (getattr(left, moment), getattr(right, moment)) for moment in ("second_moment", "mean")
    ]
    return max(pairs, key=lambda pair: float(pair[0].z(pair[1])))


def _related(name: str, left: Estimate, right: Estimate, notes: list[str]) -> LimitRelation:
    """What two numbers say; of a scalar that stays random they are no more than its mean."""
    if not (left.random or right.random):
        return "equal within errors" if left.z(right) <= Z else "different"
    spreads = _spread(left), _spread(right)
    shown = " and ".join(f"{spread.value:.4g}" for spread in spreads)
    notes.append(f"{name} is random in the limit, with the standard deviations {shown}.")
    return "not compared" if left.z(right) <= Z and spreads[0].z(spreads[1]) <= Z else "different"


def _spread(estimate: Estimate) -> Estimate:
    """The standard deviation of a scalar in the limit, with its error over the replicates."""
    value = estimate.std or 0.0
    if estimate.replicates < 2:
        return Estimate(value, ROUNDING * value, estimate.method)
    return Estimate(value, value / sqrt(2 * (estimate.replicates - 1)), estimate.method)


def _row(
    name: str,
    gaps: Mapping[int, Values],
    relation: LimitRelation,
    numbers: tuple[Estimate, Estimate] | None,
) -> EquivalenceRow:
    worst = tuple(float(values.max()) for values in gaps.values())
    equal = max(worst) <= ROUNDING if worst else None
    fit = None
    if equal is False:
        found = slope(list(gaps), [values.tolist() for values in gaps.values()])
        fit = SlopeRow(name, "gap", found.value, found.low, found.high, found.reason or "")
    if numbers is None:
        return EquivalenceRow(name, worst, equal, fit, relation)
    left, right = numbers
    return EquivalenceRow(name, worst, equal, fit, relation, left, right, left.z(right))
