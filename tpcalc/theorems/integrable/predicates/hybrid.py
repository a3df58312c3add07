"""Proposition 4.1 and Theorem 4.2: IP-LLR is muP that forgets its hidden initial weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import isfinite
from operator import attrgetter

from tpcalc import checks
from tpcalc.errors import TpcalcError, UsageError
from tpcalc.finite.simulate import simulate
from tpcalc.names import stepped
from tpcalc.networks.architectures.mlp import MLP
from tpcalc.networks.network import Architecture
from tpcalc.program.program import Program
from tpcalc.questions.equivalent import equivalent
from tpcalc.results import Claim, Equivalence, Hypothesis, Samples
from tpcalc.theorems.integrable.predicates.assumptions import sides
from tpcalc.theorems.integrable.predicates.case import Case, asked
from tpcalc.theorems.integrable.predicates.setting import (
    bias_at_most_first,
    continuous_loss,
    degree_of,
    is_llr,
    named,
    spared,
)
from tpcalc.theorems.integrable.predicates.statement import theorem
from tpcalc.training.parameterizations import lookup as find_parameterization
from tpcalc.training.training import Rate, Routine

_homogeneous = attrgetter("activation.homogeneous")
_high_degree = attrgetter("activation.high_degree")
WIDTHS = (32, 128)
SEEDS = 1
ROUGH = (
    "for p = 1 and beta = 0 the limits differ from t = 2 on: coordinates of h_1 whose gate is "
    "shut are 0 in the limit, the initial weights of IP-LLR may open it, HPZ has none left"
)


def learning_rate_correction(
    architecture: Architecture,
    data: Samples,
    *,
    width: int,
    seed: int = 0,
    loss: str = "mse",
    p: object = 1,
) -> float:
    """What the first learning rate of HP is multiplied by to be IP-LLR: chi_0^IP / chi_0^HP.

    Args:
        architecture: The network.
        data: Training data; the first sample counts.
        width: The width n.
        seed: Of the initial weights, as in ``simulate`` with the backend ``"dense"``.
        loss: Catalogue name.
        p: The degree of homogeneity of the activation.

    Returns:
        The factor, of one network of this width.

    Raises:
        StudyError: Targets that do not fit the loss, or more than one output.
        UsageError: chi_0 of HP is 0: no rate will do.

    Source: Hajjar, Chizat, Giraud, Proposition 4.1.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> data = Samples(((1.0, 0.5),), ((1.0,),))
        >>> learning_rate_correction(MLP(2), data, width=8, loss="linear")
        1.0
    """
    settings: Routine = {"steps": 1, "loss": loss}
    exponents = find_parameterization("ip-llr", p=p)
    case = asked(architecture, exponents, data, settings, derive=False)
    if data.outputs != 1:
        raise UsageError(
            f"the data have {data.outputs} outputs.", hint="The correction is for one output."
        )
    width = checks.whole(width, "width", least=1, hint="It is the width n.")
    seed = checks.seed(seed)
    return _correction(case, width, seed)


def _rough(case: Case) -> tuple[str, ...]:
    """What is known for p = 1: nothing goes wrong where no gate shuts."""
    network = case.run.network
    shut = isinstance(network, MLP) and spared(case) and sides(network.activation)[1] == 0
    return (ROUGH,) if shut else ()


def is_llr_or(case: Case, hybrid: str) -> Hypothesis:
    """The tables of IP-LLR, or of a hybrid.

    Source: Hajjar, Chizat, Giraud, sections 4.1 and 4.2.
    """
    found = is_llr(case)
    met = found.met or named(case, hybrid).met
    text = case.run.parameterization.text if met else found.found
    return Hypothesis(f"{found.text} or {hybrid}", met, text)


def _corrected(case: Case) -> Hypothesis:
    """That chi_0 of HP is not 0; its output at finite width has a density around the target."""
    text = "chi_0 of HP is not 0"
    signs = {case.slope(output) != 0 for output in (-1e3, -1.0, 0.0, 1.0, 1e3)}
    found = "it has one sign" if signs == {True} else "it is 0 with probability 0 at finite width"
    return Hypothesis(text, True, found)


def _pair(case: Case, other: str, correction: float = 1.0) -> tuple[Program, Program]:
    """The programs of IP-LLR and a hybrid; the first rate of the hybrid is corrected."""

    def rate(layer: int, step: int) -> Fraction | float:
        value = case.run.factor(layer, step)
        return value * correction if step == 0 else value

    return _program(case, "ip-llr", case.run.lr), _program(case, other, rate)


def _program(case: Case, name: str, lr: Rate) -> Program:
    parameters = {"p": degree_of(case)} if name == "ip-llr" else {}
    exponents = find_parameterization(name, **parameters)
    return case.on_samples.replace(parameterization=exponents, lr=lr).program


def _correction(case: Case, width: int, seed: int) -> float:
    slopes = []
    for name in ("ip-llr", "hp"):
        program = _program(case, name, Fraction(1))
        table = simulate(program, (width,), 1, seed=seed, backend="dense")
        (value,) = (row.values[0] for row in table.rows if row.name == stepped("f", 0, 0))
        slopes.append(case.slope(value))
    if slopes[1] == 0 or not all(map(isfinite, slopes)):
        raise UsageError(
            f"chi_0 of hp is {slopes[1]:g}.",
            where=f"width {width}, seed {seed}",
            hint="No learning rate makes up for a first step that does not move; take other data.",
        )
    return slopes[0] / slopes[1]


def _compared(case: Case, other: str, widths: tuple[int, ...]) -> Equivalence | str:
    """The two programs compared, or why they are not."""
    first = 1 if widths else 0
    names = [stepped("f", t, i) for t in range(first, case.run.steps + 1) for i in (0, 1)]

    def at_width(width: int, seed: int) -> tuple[Program, Program]:
        return _pair(case, other, _correction(case, width, seed))

    try:
        return equivalent(
            *_pair(case, other),
            outputs=names,
            widths=widths,
            seeds=SEEDS,
            at_width=at_width if widths else None,
        )
    except TpcalcError as error:
        return error.message


@theorem(
    "IP-LLR and HP are the same at every width, with the first rate corrected",
    "Proposition 4.1",
    (partial(is_llr_or, hybrid="hp"), bias_at_most_first, _homogeneous, _corrected),
    notes=lambda case: (
        "f_0 are not the same: that of HP is larger, by the powers of n of its hidden weights",
    ),
    about=lambda case: is_llr_or(case, "hp").met,
)
def equiv_hp(case: Case) -> Iterator[Claim]:
    """Whether IP-LLR and HP are one network at every width, with the first learning rate corrected.

    The rate of the first step of HP is eta chi_0^IP / chi_0^HP, with both outputs those of the
    network at hand; f_t are the same for t >= 1, f_0 are not.

    Returns:
        The answer; its claims are networks of three widths with the same initial weights.

    Source: Hajjar, Chizat, Giraud, Proposition 4.1.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = equiv_hp(MLP(2, "relu", bias="first"), "ip-llr", derive=False)
        >>> found.answer, [claim.stated for claim in found.claims]
        ('holds', ['the same in both', 'the same in both'])
    """
    found = _compared(case, "hp", WIDTHS) if case.limits else ""
    shown = ", ".join(map(str, WIDTHS))
    for t in range(1, case.run.steps + 1):
        text, stated = f"f_{t}", "the same in both"
        if isinstance(found, str):
            yield Claim(text, stated, found)
            continue
        rows = [found[stepped("f", t, i)] for i in (0, 1)]
        worst = max(gap for row in rows for gap in row.gaps)
        equal = all(row.equal for row in rows)
        derived = f"relative difference {worst:.1e} at most, n = {shown}"
        yield Claim(text, stated, derived, equal)


def _limits(case: Case, stated: str) -> Iterator[Claim]:
    found = _compared(case, "hpz", ()) if case.limits else ""
    for t in range(case.run.steps + 1):
        text = f"the limit of f_{t}"
        if isinstance(found, str):
            yield Claim(text, stated, found)
            continue
        relations = {found[stepped("f", t, i)].relation for i in (0, 1)}
        agrees: bool | None = True
        if "different" in relations:
            agrees = False
        elif "not compared" in relations:
            agrees = None
        yield Claim(text, stated, ", ".join(sorted(relations)), agrees if stated else None)


def _left_open(case: Case, missing: Sequence[Hypothesis]) -> Iterator[Claim]:
    """What is derived for p = 1, of which nothing is stated."""
    if spared(case) and len(missing) == 1:
        yield from _limits(case, "")


@theorem(
    "IP-LLR and HPZ have the same limits of f_t for all t",
    "Theorem 4.2",
    (partial(is_llr_or, hybrid="hpz"), bias_at_most_first, continuous_loss, _high_degree),
    notes=_rough,
    otherwise=_left_open,
    about=lambda case: is_llr_or(case, "hpz").met,
)
def equiv_hpz(case: Case) -> Iterator[Claim]:
    """Whether IP-LLR and HPZ have the same limits, with the same learning rates.

    For p = 1 nothing is stated, and what is derived is told all the same.

    Returns:
        The answer; its claims are the limits of the two programs, compared as graphs.

    Source: Hajjar, Chizat, Giraud, Theorem 4.2.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = equiv_hpz(MLP(2, "relu^2", bias="first"), "ip-llr:2", steps=1)
        >>> found.answer, found.differs
        ('holds', False)
    """
    return _limits(case, "the same in both")
