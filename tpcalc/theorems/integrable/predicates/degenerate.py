"""Remark 3.1(3): with sigma(0) != 0, Naive-IP moves in its last two layers, blind to its input."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tpcalc.dsl import extend
from tpcalc.dsl.tracer import Tracer
from tpcalc.names import layered, stepped
from tpcalc.results import Claim, Hypothesis, Theorem
from tpcalc.theorems.integrable.predicates.case import Case, theorem
from tpcalc.theorems.integrable.predicates.claims import (
    Size,
    answered,
    bounds,
    of_order_one,
    sizes,
    vanishing,
)
from tpcalc.theorems.integrable.predicates.setting import (
    continuous_loss,
    first_slope,
    hidden_layers,
    is_naive,
    slope_at_zero,
    smooth,
)


@theorem
def degenerate(case: Case) -> Theorem:
    """Whether learning in Naive-IP with sigma(0) != 0 is degenerate: f_1 does not feel its input.

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

    Source: Hajjar, Chizat, Giraud, Remark 3.1(3).

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = degenerate(MLP(3, "sigmoid", bias="all"), "naive-ip")
        >>> found.answer, found.differs
        ('holds', False)
        >>> found.claims[-1].stated, found.claims[-1].agrees
        ('tends to 0', True)
    """
    return answered(
        case,
        "degenerate",
        "Naive-IP with sigma(0) != 0 learns a constant: f_1 does not depend on the input",
        "Remark 3.1(3)",
        (
            is_naive,
            partial(hidden_layers, least=3),
            continuous_loss,
            _not_zero_at_zero,
            slope_at_zero,
            first_slope,
        ),
        _claims,
        smoothness=smooth,
        notes=_notes,
    )


def _not_zero_at_zero(case: Case) -> Hypothesis:
    found = case.activation.zero_at_zero
    return Hypothesis("sigma(0) != 0", not found.met, found.found)


def _claims(case: Case) -> Iterator[Claim]:
    q, depth = case.batch, case.depth
    yield vanishing("f_0", sizes(case, [stepped("f", 0, q)]))
    for layer in range(1, depth):
        names = [layered("dW_x", layer, 1, q), layered("dB", layer, 1)]
        yield vanishing(f"what the first update adds to layer {layer}", sizes(case, names))
    last = sizes(case, [layered("dW_x", depth, 1, q)])
    yield of_order_one(f"what the first update adds to layer {depth}", last, "order one")
    yield of_order_one("f_1", sizes(case, [stepped("f", 1, q)]), "a number other than 0")
    apart = _apart(case) if case.limits else {}
    yield vanishing("the difference of f_1 at two inputs", apart)


def _apart(case: Case) -> dict[str, Size]:
    """The order of f_1 at the training input less that at another."""
    program = case.trained(1)

    def more(t: Tracer) -> None:
        t.output("apart", t[stepped("f", 1, 0)] - t[stepped("f", 1, 1)])

    return bounds(extend(program, more), ["apart"])


def _notes(case: Case) -> Iterator[str]:
    if not is_naive(case).met or case.depth < 3 or case.activation.zero_at_zero.met:
        return
    yield (
        "with s = sigma(0) and U = U^(L+1): h_1^L tends to -eta chi_0 s^2 sigma'(0) U, "
        "f_1 to E[(U - eta chi_0 s) sigma(-eta chi_0 s^2 sigma'(0) U)]"
    )
    if not case.activation.slope_at_zero.met:
        yield "with sigma'(0) = 0 layer L does not move either; f_1 tends to -eta chi_0 s^2"
