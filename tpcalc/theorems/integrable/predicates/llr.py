"""Theorems 3.2 and 4.1, Remark 4.2(2): large initial learning rates, for powers and what is linear.

Sizes of what updates add follow from the exponents of the first pass: with e_l = gamma_l(p) - c_l
the update of layer l has the factor n^(e_l), and no expectation is 0 for a non-negative sigma.

The remark, that IP-LLR works for activations with sigma'(0) != 0, fails for L >= 3: the first pass
is linear above the first layer, x_0^2 is centred and independent of dh_0^2, to which h_1^2 is
proportional. So lambda_2 = E[x_0^2 x_1^2] = E[x_0^2] E[x_1^2] = 0, the first update adds nothing to
layer 3, and f_1 tends to 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import isfinite

from tpcalc.errors import TpcalcError
from tpcalc.evaluate.limit import limit
from tpcalc.exponents import as_ex
from tpcalc.names import Name, change, layered, stepped
from tpcalc.results import Claim, Estimate, Hypothesis, Method
from tpcalc.theorems.integrable.forms.exponents import later_updates
from tpcalc.theorems.integrable.predicates.case import Case
from tpcalc.theorems.integrable.predicates.claims import (
    finite,
    of_order_one,
    of_power,
    sizes,
    vanishing,
)
from tpcalc.theorems.integrable.predicates.setting import (
    bias_at_most_first,
    continuous_loss,
    degree_of,
    first_input,
    first_slope,
    hidden_layers,
    homogeneous,
    integrable,
    is_llr,
    named,
    non_orthogonal,
    slope_at_zero,
    smooth,
    spared,
    zero_at_zero,
)
from tpcalc.theorems.integrable.predicates.statement import theorem
from tpcalc.training.parameterizations.integrable import gamma, naive_ip

HALF = Fraction(1, 2)
OUTPUTS = (-1e3, -1.0, 0.0, 1.0, 1e3)  # at which the sign of the slope of a loss is looked at
Z = 5.0
_is_linear = partial(named, name="ip-llr", p=1)


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


def _step(case: Case, step: int, stated: Sequence[Fraction | None]) -> Iterator[Claim]:
    for layer, value in enumerate(stated, start=1):
        where = "the output" if layer > case.depth else f"layer {layer}"
        text = f"what update {step} adds to {where}"
        found = sizes(case, [layered("dW_x", layer, step, case.run.batch)])
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


def _needed(case: Case) -> Iterator[str]:
    if not integrable(case).met or not case.activation.supported:
        return
    wanted = ", ".join(map(str, _gamma(case)))
    later = ", ".join(map(str, naive_ip(case.depth, 1).c))
    yield f"gamma(p) = ({wanted}) at step 0, ({later}) after it"
    if case.depth >= 3 and _numbers(case).met and _first_rates(case) and not _second_rates(case):
        shown = ", ".join(map(str, _later(case)))
        yield f"the second updates themselves carry the powers ({shown}) of n"


@theorem(
    "the first two updates are of order one only for c(0) = gamma(p), c(1) = (-1, -2, .., -1)",
    "Theorem 3.2",
    (
        integrable,
        _numbers,
        partial(hidden_layers, least=3),
        bias_at_most_first,
        continuous_loss,
        first_slope,
        _second_slope,
        non_orthogonal,
    ),
    holds=lambda case: _first_rates(case) and _second_rates(case),
    smoothness=homogeneous,
    spares=spared,
    notes=_needed,
    about=lambda case: integrable(case).met,
)
def llr_necessary(case: Case) -> Iterator[Claim]:
    """Whether the first two updates neither vanish nor explode: the learning rates that they need.

    These are c(0) = gamma(p) and c(1) = (-1, -2, ..., -2, -1), and differ from each other for three
    hidden layers or more: no rates that are constant in time will do.

    Returns:
        ``"holds"`` for these rates; each claim is what an update adds to a layer, with its
        exponent, beside the order that is derived.

    Source: Hajjar, Chizat, Giraud, Theorems 3.1 and 3.2, Lemma F.4, Lemma H.4.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = llr_necessary(MLP(3, "relu^2", bias="first"), "naive-ip")
        >>> found.answer, found.differs
        ('does not hold', False)
        >>> [claim.stated for claim in found.claims[:2]]
        ['n^(-3): vanishing', 'n^(-5/2): vanishing']
    """
    yield from _step(case, 1, first_contributions(case))
    second: Sequence[Fraction | None] = [None] * (case.depth + 1)
    if _first_rates(case):
        second = second_contributions(case)
    yield from _step(case, 2, second)


def _signed(value: Estimate) -> str:
    """The sign of a number, and how far from 0 it is; its size may be dominated by rare samples."""
    word = "positive" if value.value > 0 else "negative"
    if not isfinite(value.value):
        return "not settled"
    if value.stderr == 0:
        return f"{word if value.value else '0'} ({value.method.value})"
    distance = abs(value.value) / value.stderr
    if distance < Z:
        return "not settled"
    errors = "errors" if value.method is Method.EXACT else "standard errors"
    return f"{word}, {min(distance, 1e6):.3g} {errors} from 0 ({value.method.value})"


def _sign_of_output(case: Case, wanted: int) -> Claim:
    """The sign of f_1, that of -chi_0, beside its limit at two inputs."""
    words = {1: "positive", -1: "negative"}
    text, stated = "the sign of f_1", f"{words[wanted]}, that of -chi_0"
    if not case.limits:
        return Claim(text, stated, "")
    program = case.trained(1)
    try:
        found = limit(
            program,
            outputs=[
                str(own) for own in map(Name.of, program.output) if (own.word, own.step) == ("f", 1)
            ],
        )
    except TpcalcError as error:
        return Claim(text, stated, f"no limit: {error.message}")
    values = [found[name] for name in found]
    derived = ", ".join(map(_signed, values))
    ends = [value.value - wanted * Z * value.stderr for value in values]
    if not all(isfinite(end) for end in ends):
        return Claim(text, stated, derived)
    if all(wanted * end > 0 for end in ends):
        return Claim(text, stated, derived, True)
    against = any(wanted * value.value < -Z * value.stderr for value in values)
    return Claim(text, stated, derived, False if against else None)


@theorem(
    "IP-LLR is not trivial and stable: f_1 tends to a number other than 0, f_2 stays finite",
    "Theorem 4.1",
    (is_llr, bias_at_most_first, first_input, continuous_loss, first_slope),
    smoothness=homogeneous,
    spares=spared,
    about=lambda case: is_llr(case).met,
    near=True,
)
def nontrivial_stable(case: Case) -> Iterator[Claim]:
    """Whether IP-LLR leaves its start at the first step and stays finite.

    f_0 tends to 0, f_1 to a number of the sign of -chi_0, f_2 to a finite number.

    Source: Hajjar, Chizat, Giraud, Theorem 4.1, Theorem G.12, Appendix I.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = nontrivial_stable(MLP(3, "relu^2", bias="first"), "ip-llr:2")
        >>> found.answer, found.differs
        ('holds', False)
        >>> found = nontrivial_stable(MLP(3, "relu", bias="all"), "ip-llr", derive=False)
        >>> found.missing[0].found
        'it has biases in all layers'
    """
    q = case.run.batch
    yield vanishing("f_0", sizes(case, [stepped("f", 0, q)]))
    yield of_order_one("f_1", sizes(case, [stepped("f", 1, q)]), "a number other than 0")
    wanted = -1 if case.slope(0.0) > 0 else 1
    yield _sign_of_output(case, wanted)
    yield finite("f_2", sizes(case, [stepped("f", 2, q)]))
    verdict = case.verdict
    if verdict is not None:
        exploding = verdict.verdict == "unstable"
        known = verdict.verdict == "feature-learning" and verdict.valid_for == "all t"
        word = f"{verdict.verdict}, {verdict.valid_for}"
        agrees = False if exploding else True if known else None
        yield Claim("training at all t", "stays finite", word, agrees)


def _first_move(case: Case) -> tuple[str, bool | None]:
    q = case.run.batch
    for step in range(1, case.run.steps + 1):
        for size in sizes(case, [change(stepped("f", step, q), stepped("f", 0, q))]).values():
            moved = size.equal(Fraction(0))
            if moved is None:
                return "", None
            if moved:
                return f"step {step}", step == 1
    verdict = case.verdict
    if verdict is None:
        return "", None
    trivial = verdict.verdict == "trivial" and verdict.valid_for == "all t"
    return "never" if trivial else f"not up to step {case.run.steps}", False


def _why_not(case: Case) -> Iterator[str]:
    if case.depth < 3 or not slope_at_zero(case).met:
        return
    yield (
        "lambda_2 = 0: above layer 1 the first pass is linear, so x_0^2 is centred and independent "
        "of dh_0^2, to which h_1^2 is proportional"
    )
    if case.depth <= 4:
        yield "for L = 3 and 4 learning starts at t = 2, through dx_1 proportional to x_0"
    else:
        yield "for L >= 5 the limit stays at its start for all t, by induction over the steps"


def _linear_near_zero(case: Case) -> bool:
    rest = case.activation.zero_at_zero.met and case.activation.slope_at_zero.met
    return rest and _is_linear(case).met


@theorem(
    "IP-LLR with p = 1 learns at the first step where sigma(0) = 0, sigma'(0) != 0",
    "Remarks 4.2(2) and F.3(4)",
    (
        _is_linear,
        bias_at_most_first,
        first_input,
        continuous_loss,
        first_slope,
        zero_at_zero,
        slope_at_zero,
        smooth,
    ),
    holds=lambda case: case.depth < 3,
    notes=_why_not,
    about=_linear_near_zero,
)
def linearizable(case: Case) -> Iterator[Claim]:
    """Whether IP-LLR with p = 1 learns at the first step for an activation with sigma'(0) != 0.

    The remark says so for every depth. It does for two hidden layers; for more the first update
    adds nothing above layer 2.

    Returns:
        ``"holds"`` up to two hidden layers, ``"does not hold"`` beyond; the claims of the remark
        beside what is derived, and the step from which f moves.

    Source: Hajjar, Chizat, Giraud, Remarks 4.2(2) and F.3(4).

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = linearizable(MLP(3, "tanh", bias="first"), "ip-llr")
        >>> found.answer, found.differs
        ('does not hold', True)
        >>> found.claims[-1].derived
        'step 2'
        >>> linearizable(MLP(5, "tanh", bias="first"), "ip-llr").claims[-1].derived
        'never'
    """
    q, depth = case.run.batch, case.depth
    for layer in range(1, depth + 2):
        where = "the output" if layer > depth else f"layer {layer}"
        through_bias = layer == 1 and not any(case.samples.inputs[0])
        found = sizes(case, [layered("dB", 1, 1) if through_bias else layered("dW_x", layer, 1, q)])
        # lambda_2 = 0 is what the output gets for L = 2, and f_1 does not need it.
        stated = "" if depth == 2 and layer == 3 else "order one"
        yield of_order_one(f"what the first update adds to {where}", found, stated)
    moved = sizes(case, [change(stepped("f", 1, q), stepped("f", 0, q))])
    yield of_order_one("f_1 - f_0", moved, "a number other than 0")
    yield Claim("the step at which f first moves", "step 1", *_first_move(case))
