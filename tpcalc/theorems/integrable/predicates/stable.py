"""Theorem 4.1: IP-LLR learns at the first step, and stays finite."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from tpcalc.errors import TpcalcError
from tpcalc.evaluate.limit import limit
from tpcalc.names import Name, stepped
from tpcalc.results import Claim, Estimate, Method, Theorem
from tpcalc.theorems.integrable.predicates.case import Case, theorem
from tpcalc.theorems.integrable.predicates.claims import (
    answered,
    finite,
    of_order_one,
    sizes,
    vanishing,
)
from tpcalc.theorems.integrable.predicates.setting import (
    bias_at_most_first,
    continuous_loss,
    first_input,
    first_slope,
    homogeneous,
    is_llr,
    spared,
)

Z = 5.0


@theorem
def nontrivial_stable(case: Case) -> Theorem:
    """Whether IP-LLR leaves its start at the first step and stays finite.

    f_0 tends to 0, f_1 to a number of the sign of -chi_0, f_2 to a finite number.

    Args:
        architecture: The network, or a training run (``tp.Training``) and nothing of it besides.
        parameterization: A catalogue name or a parameterization.
        data: Training data; None: generic data.
        derive: Whether claims are derived from the program besides.
        settings: As ``tp.Training`` takes them: steps (2), lr, loss, batch, ...

    Returns:
        The answer, with each hypothesis and each claim.

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UnknownName: No such parameterization or loss.

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
    return answered(
        case,
        "nontrivial_stable",
        "IP-LLR is not trivial and stable: f_1 tends to a number other than 0, f_2 stays finite",
        "Theorem 4.1",
        (is_llr, bias_at_most_first, first_input, continuous_loss, first_slope),
        _claims,
        smoothness=homogeneous,
        spares=spared,
    )


def _claims(case: Case) -> Iterator[Claim]:
    q = case.batch
    yield vanishing("f_0", sizes(case, [stepped("f", 0, q)]))
    yield of_order_one("f_1", sizes(case, [stepped("f", 1, q)]), "a number other than 0")
    wanted = -1 if case.slope(0.0) > 0 else 1
    yield _sign(case, wanted)
    yield finite("f_2", sizes(case, [stepped("f", 2, q)]))
    verdict = case.verdict
    if verdict is not None:
        exploding = verdict.verdict == "unstable"
        known = verdict.verdict == "feature-learning" and verdict.valid_for == "all t"
        word = f"{verdict.verdict}, {verdict.valid_for}"
        agrees = False if exploding else True if known else None
        yield Claim("training at all t", "stays finite", word, agrees)


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


def _sign(case: Case, wanted: int) -> Claim:
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
