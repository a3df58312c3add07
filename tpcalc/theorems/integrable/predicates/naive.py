"""Proposition 3.1 and Remark 3.1(3): what the naive integrable parameterization does, and where.

It is trivial from three hidden layers on; with sigma(0) != 0 it moves in its last two layers, blind
to its input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from tpcalc.dsl import extend
from tpcalc.dsl.tracer import Tracer
from tpcalc.names import change, layered, stepped
from tpcalc.results import Claim, Hypothesis
from tpcalc.theorems.integrable.predicates.case import Case
from tpcalc.theorems.integrable.predicates.claims import (
    Size,
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
    zero_at_zero,
)
from tpcalc.theorems.integrable.predicates.statement import theorem

_is_deep = partial(hidden_layers, least=3)


def _start(initial: str) -> str:
    return {"vanishes": "it vanishes", "explodes": "it explodes"}.get(initial, "it does not vanish")


def _shallow(case: Case, missing: Sequence[Hypothesis]) -> Iterator[Claim]:
    """What is derived for two layers, of which the proposition says nothing."""
    lacking = {hypothesis.text for hypothesis in missing}
    if case.depth != 2 or not lacking <= {_is_deep(case).text, smooth(case).text}:
        return
    q = case.run.batch
    for layer in (1, 2, 3):
        where = "the output" if layer == 3 else f"layer {layer}"
        found = sizes(case, [layered("dW_x", layer, 1, q)])
        yield vanishing(f"what the first update adds to {where}", found, "")
    yield vanishing("f_1 - f_0", sizes(case, [change(stepped("f", 1, q), stepped("f", 0, q))]), "")


def _where_it_learns(case: Case) -> Iterator[str]:
    if not is_naive(case).met:
        return
    if case.depth == 1:
        yield "with one hidden layer the tables of naive-ip are those of mup, which learns"
    if case.depth != 2:
        return
    if case.activation.slope_at_zero.met:
        yield (
            "L = 2 with sigma'(0) != 0 is not trivial: h_1^2 tends to "
            "-eta chi_0 E[x_0^1 x_1^1] sigma'(0) U^3"
        )
    elif case.activation.smooth.met:
        yield "L = 2 with a smooth sigma and sigma'(0) = 0 is trivial: dh^2 vanishes with h^2"
    elif case.activation.supported:
        yield "L = 2 with a rectifier is not trivial: its gate does not close where h^2 vanishes"


@theorem(
    "Naive-IP is trivial: f_t tends to 0 for all t",
    "Proposition 3.1",
    (is_naive, _is_deep, continuous_loss, zero_at_zero),
    smoothness=smooth,
    notes=_where_it_learns,
    otherwise=_shallow,
    about=lambda case: is_naive(case).met,
    near=True,
)
def trivial_naive_ip(case: Case) -> Iterator[Claim]:
    """Whether Naive-IP is trivial: all outputs stay at 0.

    Two meanings of the word are told apart. The start is trivial: h_0 tends to 0 above the first
    layer. Learning is trivial: f_t tends to the limit of f_0.

    Returns:
        The answer, with each hypothesis and each claim; for two hidden layers what is derived.

    Source: Hajjar, Chizat, Giraud, Proposition 3.1.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = trivial_naive_ip(MLP(3, "tanh"), "naive-ip")
        >>> found.answer, found.differs
        ('holds', False)
        >>> found = trivial_naive_ip(MLP(2, "tanh"), "naive-ip", derive=False)
        >>> found.answer, [each.found for each in found.missing]
        ('outside', ['L = 2'])
    """
    steps = range(1, case.run.steps + 1)
    q = case.run.batch
    verdict = case.verdict
    start = "" if verdict is None else _start(verdict.initial)
    agrees = None if verdict is None else verdict.initial == "vanishes"
    yield Claim("h_0 above the first layer (the start)", "tends to 0", start, agrees)
    for layer in range(1, case.depth + 2):
        names = [
            name for t in steps for name in (layered("dW_x", layer, t, q), layered("dB", layer, t))
        ]
        where = "the output" if layer > case.depth else f"layer {layer}"
        yield vanishing(f"what updates add to {where}", sizes(case, names))
    yield vanishing("f_0", sizes(case, [stepped("f", 0, q)]))
    changes = [change(stepped("f", t, q), stepped("f", 0, q)) for t in steps]
    yield vanishing(f"f_t - f_0 for t <= {case.run.steps} (learning)", sizes(case, changes))
    if verdict is not None:
        trivial = verdict.verdict == "trivial"
        known = trivial and verdict.valid_for == "all t"
        word = f"{verdict.verdict}, {verdict.valid_for}"
        yield Claim("learning at all t", "trivial", word, True if known else None)


def _not_zero_at_zero(case: Case) -> Hypothesis:
    found = case.activation.zero_at_zero
    return Hypothesis("sigma(0) != 0", not found.met, found.found)


def _apart(case: Case) -> dict[str, Size]:
    """The order of f_1 at the training input less that at another."""
    program = case.trained(1)

    def more(t: Tracer) -> None:
        t.output("apart", t[stepped("f", 1, 0)] - t[stepped("f", 1, 1)])

    return bounds(extend(program, more), ["apart"])


def _what_it_learns(case: Case) -> Iterator[str]:
    if not is_naive(case).met or case.depth < 3 or case.activation.zero_at_zero.met:
        return
    yield (
        "with s = sigma(0) and U = U^(L+1): h_1^L tends to -eta chi_0 s^2 sigma'(0) U, "
        "f_1 to E[(U - eta chi_0 s) sigma(-eta chi_0 s^2 sigma'(0) U)]"
    )
    if not case.activation.slope_at_zero.met:
        yield "with sigma'(0) = 0 layer L does not move either; f_1 tends to -eta chi_0 s^2"


@theorem(
    "Naive-IP with sigma(0) != 0 learns a constant: f_1 does not depend on the input",
    "Remark 3.1(3)",
    (is_naive, _is_deep, continuous_loss, _not_zero_at_zero, slope_at_zero, first_slope),
    smoothness=smooth,
    notes=_what_it_learns,
    about=lambda case: not case.activation.zero_at_zero.met and is_naive(case).met,
)
def degenerate(case: Case) -> Iterator[Claim]:
    """Whether learning in Naive-IP with sigma(0) != 0 is degenerate: f_1 does not feel its input.

    Source: Hajjar, Chizat, Giraud, Remark 3.1(3).

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = degenerate(MLP(3, "sigmoid", bias="all"), "naive-ip")
        >>> found.answer, found.differs
        ('holds', False)
        >>> found.claims[-1].stated, found.claims[-1].agrees
        ('tends to 0', True)
    """
    q, depth = case.run.batch, case.depth
    yield vanishing("f_0", sizes(case, [stepped("f", 0, q)]))
    for layer in range(1, depth):
        names = [layered("dW_x", layer, 1, q), layered("dB", layer, 1)]
        yield vanishing(f"what the first update adds to layer {layer}", sizes(case, names))
    last = sizes(case, [layered("dW_x", depth, 1, q)])
    yield of_order_one(f"what the first update adds to layer {depth}", last, "order one")
    yield of_order_one("f_1", sizes(case, [stepped("f", 1, q)]), "a number other than 0")
    apart = _apart(case) if case.limits else {}
    yield vanishing("the difference of f_1 at two inputs", apart)
