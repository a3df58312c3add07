"""Remark 4.2(2): the claim that IP-LLR works for activations with sigma'(0) != 0, which fails.

For L >= 3 the first pass is linear above the first layer: x_0^2 is centred and independent of
dh_0^2, to which h_1^2 is proportional. So lambda_2 = E[x_0^2 x_1^2] = E[x_0^2] E[x_1^2] = 0, the
first update adds nothing to layer 3, and f_1 tends to 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tpcalc.names import change, layered, stepped
from tpcalc.results import Claim, Theorem
from tpcalc.theorems.integrable.predicates.case import Case, theorem
from tpcalc.theorems.integrable.predicates.claims import answered, of_order_one, sizes
from tpcalc.theorems.integrable.predicates.setting import (
    bias_at_most_first,
    continuous_loss,
    first_input,
    first_slope,
    named,
    slope_at_zero,
    smooth,
    zero_at_zero,
)


@theorem
def linearizable(case: Case) -> Theorem:
    """Whether IP-LLR with p = 1 learns at the first step for an activation with sigma'(0) != 0.

    The remark says so for every depth. It does for two hidden layers; for more the first update
    adds nothing above layer 2.

    Args:
        architecture: The network, or a training run (``tp.Training``) and nothing of it besides.
        parameterization: A catalogue name or a parameterization.
        data: Training data; None: generic data.
        derive: Whether claims are derived from the program besides.
        settings: As ``tp.Training`` takes them: steps (2), lr, loss, batch, ...

    Returns:
        ``"holds"`` up to two hidden layers, ``"does not hold"`` beyond; the claims of the remark
        beside what is derived, and the step from which f moves.

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UnknownName: No such parameterization or loss.

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
    return answered(
        case,
        "linearizable",
        "IP-LLR with p = 1 learns at the first step where sigma(0) = 0, sigma'(0) != 0",
        "Remarks 4.2(2) and F.3(4)",
        (
            lambda one: named(one, "ip-llr", p=1),
            bias_at_most_first,
            first_input,
            continuous_loss,
            first_slope,
            zero_at_zero,
            slope_at_zero,
            smooth,
        ),
        _claims,
        holds=lambda one: one.depth < 3,
        notes=_notes,
    )


def _claims(case: Case) -> Iterator[Claim]:
    q, depth = case.batch, case.depth
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


def _first_move(case: Case) -> tuple[str, bool | None]:
    q = case.batch
    for step in range(1, case.steps + 1):
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
    return "never" if trivial else f"not up to step {case.steps}", False


def _notes(case: Case) -> Iterator[str]:
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
