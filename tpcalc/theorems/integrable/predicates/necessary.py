"""Theorem 3.2: the learning rates that integrable parameterizations need; none is constant in time.

Sizes of what updates add follow from the exponents of the first pass: with e_l = gamma_l(p) - c_l
the update of layer l has the factor n^(e_l), and no expectation is 0 for a non-negative sigma.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import isfinite

from tpcalc.errors import TpcalcError
from tpcalc.evaluate.limit import limit
from tpcalc.exponents import as_ex
from tpcalc.names import layered, stepped
from tpcalc.results import Claim, Hypothesis, Theorem
from tpcalc.theorems.integrable.forms.exponents import later_updates
from tpcalc.theorems.integrable.predicates.case import Case, theorem
from tpcalc.theorems.integrable.predicates.claims import answered, of_power, sizes, vanishing
from tpcalc.theorems.integrable.predicates.setting import (
    bias_at_most_first,
    continuous_loss,
    degree_of,
    first_slope,
    hidden_layers,
    homogeneous,
    integrable,
    non_orthogonal,
    spared,
)
from tpcalc.training.parameterizations.integrable import gamma, naive_ip

HALF = Fraction(1, 2)
OUTPUTS = (-1e3, -1.0, 0.0, 1.0, 1e3)  # at which the sign of the slope of a loss is looked at
Z = 5.0


@theorem
def llr_necessary(case: Case) -> Theorem:
    """Whether the first two updates neither vanish nor explode: the learning rates that they need.

    These are c(0) = gamma(p) and c(1) = (-1, -2, ..., -2, -1), and differ from each other for three
    hidden layers or more: no rates that are constant in time will do.

    Args:
        architecture: The network, or a training run (``tp.Training``) and nothing of it besides.
        parameterization: A catalogue name or a parameterization.
        data: Training data; None: generic data.
        derive: Whether claims are derived from the program besides.
        settings: As ``tp.Training`` takes them: steps (2), lr, loss, batch, ...

    Returns:
        ``"holds"`` for these rates; each claim is what an update adds to a layer, with its
        exponent, beside the order that is derived.

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UnknownName: No such parameterization or loss.

    Source: Hajjar, Chizat, Giraud, Theorems 3.1 and 3.2, Lemma F.4, Lemma H.4.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = llr_necessary(MLP(3, "relu^2", bias="first"), "naive-ip")
        >>> found.answer, found.differs
        ('does not hold', False)
        >>> [claim.stated for claim in found.claims[:2]]
        ['n^(-3): vanishing', 'n^(-5/2): vanishing']
    """
    return answered(
        case,
        "llr_necessary",
        "the first two updates are of order one only for c(0) = gamma(p), c(1) = (-1, -2, .., -1)",
        "Theorem 3.2",
        (
            integrable,
            _numbers,
            lambda one: hidden_layers(one, 3),
            bias_at_most_first,
            continuous_loss,
            first_slope,
            _second_slope,
            non_orthogonal,
        ),
        _claims,
        holds=lambda one: _first_rates(one) and _second_rates(one),
        smoothness=homogeneous,
        spares=spared,
        notes=_notes,
    )


def _numbers(case: Case) -> Hypothesis:
    """The learning rates of the first two steps hold no symbols."""
    rates = [case.exponents(step).c for step in (0, 1)]
    met = all(c.constant is not None for row in rates for c in row)
    said = "; ".join(f"c({step}) = ({', '.join(map(str, row))})" for step, row in enumerate(rates))
    return Hypothesis("learning-rate exponents are numbers", met, said)


def _rates(case: Case, step: int) -> list[Fraction]:
    """The exponents c_l of a step, which are numbers."""
    return [c.constant or Fraction(0) for c in case.exponents(step).c]


def _gamma(case: Case) -> list[Fraction]:
    values = gamma(case.depth, as_ex(degree_of(case)))
    return [value.constant or Fraction(0) for value in values]


def _later(case: Case) -> list[Fraction]:
    """The powers of the second updates after a first one of order one."""
    row = case.exponents(1)
    return [power.constant or Fraction(0) for power in later_updates(row.a, row.c)]


def _first_rates(case: Case) -> bool:
    return _rates(case, 0) == _gamma(case)


def _second_rates(case: Case) -> bool:
    return case.exponents(1).c == naive_ip(case.depth, 1).c


def first_contributions(case: Case) -> list[Fraction]:
    """The exponents of what the first update adds to the layers 1..L+1, at any input.

    Source: Hajjar, Chizat, Giraud, Lemmas F.2 to F.4.
    """
    p = degree_of(case)
    gains = [g - c for g, c in zip(_gamma(case), _rates(case, 0), strict=True)]
    found = [gains[0]]
    x = p * max(Fraction(0), gains[0])
    for gain in gains[1:-1]:
        found.append(gain + x)
        x = p * max(gain + x, x - HALF)  # beside the initial weights, n^(-1/2) What x
    return [*found, gains[-1] + x]


def second_contributions(case: Case) -> list[Fraction | None]:
    """The same of the second update, after a first one of order one; None behind an explosion.

    Source: Hajjar, Chizat, Giraud, Lemma H.4.
    """
    found: list[Fraction | None] = []
    for gain in _later(case):
        exploded = any(value is not None and value > 0 for value in found)
        found.append(None if exploded else gain)
    return found


def _claims(case: Case) -> Iterator[Claim]:
    yield from _step(case, 1, first_contributions(case))
    second: Sequence[Fraction | None] = [None] * (case.depth + 1)
    if _first_rates(case):
        second = second_contributions(case)
    yield from _step(case, 2, second)


def _step(case: Case, step: int, stated: Sequence[Fraction | None]) -> Iterator[Claim]:
    for layer, value in enumerate(stated, start=1):
        where = "the output" if layer > case.depth else f"layer {layer}"
        text = f"what update {step} adds to {where}"
        found = sizes(case, [layered("dW_x", layer, step, case.batch)])
        if value is not None:
            yield of_power(text, found, as_ex(value))
        elif found:
            yield vanishing(text, found, "")


def _second_slope(case: Case) -> Hypothesis:
    """The derivative of the loss at the limit of f_1 is not 0."""
    text = "chi_1, the derivative of the loss at the limit of f_1, is not 0"
    if case.samples.outputs != 1:
        return Hypothesis(text, False, f"there are {case.samples.outputs} outputs")
    signs = {_sign(case.slope(output, 1)) for output in OUTPUTS}
    if len(signs) == 1 and 0 not in signs:
        return Hypothesis(text, True, "it has one sign whatever f_1 is")
    if not case.limits or not _first_rates(case):
        return Hypothesis(text, True, "not evaluated: it is 0 by accident only")
    return Hypothesis(text, *_at_first_output(case))


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _at_first_output(case: Case) -> tuple[bool, str]:
    """Whether chi_1 is not 0 at the output that the limit of the program gives."""
    try:
        output = limit(case.trained(1), outputs=[stepped("f", 1, 0)])[stepped("f", 1, 0)]
    except TpcalcError as error:
        return True, f"not evaluated: {error.message}"
    ends = [output.value + side * Z * output.stderr for side in (-1, 1)]
    if not all(isfinite(end) for end in ends):
        return True, "not evaluated: f_1 is beyond the range of a float"
    signs = {_sign(case.slope(end, 1)) for end in ends}
    found = f"chi_1 = {case.slope(output.value, 1):.3g}"
    return len(signs) == 1 and 0 not in signs, found


def _notes(case: Case) -> Iterator[str]:
    if not integrable(case).met or not case.activation.supported:
        return
    wanted = ", ".join(map(str, _gamma(case)))
    later = ", ".join(map(str, naive_ip(case.depth, 1).c))
    yield f"gamma(p) = ({wanted}) at step 0, ({later}) after it"
    if case.depth >= 3 and _numbers(case).met and _first_rates(case) and not _second_rates(case):
        shown = ", ".join(map(str, _later(case)))
        yield f"the second updates themselves carry the powers ({shown}) of n"
