"""Proposition 3.1: the naive integrable parameterization is trivial from three hidden layers on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tpcalc.names import change, layered, stepped
from tpcalc.results import Claim, Theorem
from tpcalc.theorems.integrable.predicates.case import Case, theorem
from tpcalc.theorems.integrable.predicates.claims import answered, sizes, vanishing
from tpcalc.theorems.integrable.predicates.setting import (
    continuous_loss,
    hidden_layers,
    is_naive,
    smooth,
    zero_at_zero,
)

_is_deep = partial(hidden_layers, least=3)


@theorem
def trivial_naive_ip(case: Case) -> Theorem:
    """Whether Naive-IP is trivial: all outputs stay at 0.

    Two meanings of the word are told apart. The start is trivial: h_0 tends to 0 above the first
    layer. Learning is trivial: f_t tends to the limit of f_0.

    Args:
        architecture: The network, or a training run (``tp.Training``) and nothing of it besides.
        parameterization: A catalogue name or a parameterization.
        data: Training data; None: generic data.
        derive: Whether claims are derived from the program besides.
        settings: As ``tp.Training`` takes them: steps (2), lr, loss, batch, ...

    Returns:
        The answer, with each hypothesis and each claim; for two hidden layers what is derived.

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UnknownName: No such parameterization or loss.

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
    found = answered(
        case,
        "trivial_naive_ip",
        "Naive-IP is trivial: f_t tends to 0 for all t",
        "Proposition 3.1",
        (is_naive, _is_deep, continuous_loss, zero_at_zero),
        _claims,
        smoothness=smooth,
        notes=_notes,
    )
    lacking = {hypothesis.text for hypothesis in found.missing}
    if case.plain and case.depth == 2 and lacking <= {_is_deep(case).text, smooth(case).text}:
        return replace(found, claims=tuple(_shallow(case)))
    return found


def _claims(case: Case) -> Iterator[Claim]:
    steps = range(1, case.steps + 1)
    q = case.batch
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
    yield vanishing(f"f_t - f_0 for t <= {case.steps} (learning)", sizes(case, changes))
    if verdict is not None:
        trivial = verdict.verdict == "trivial"
        known = trivial and verdict.valid_for == "all t"
        word = f"{verdict.verdict}, {verdict.valid_for}"
        yield Claim("learning at all t", "trivial", word, True if known else None)


def _start(initial: str) -> str:
    return {"vanishes": "it vanishes", "explodes": "it explodes"}.get(initial, "it does not vanish")


def _shallow(case: Case) -> Iterator[Claim]:
    """What is derived for two layers, of which the proposition says nothing."""
    q = case.batch
    for layer in (1, 2, 3):
        where = "the output" if layer == 3 else f"layer {layer}"
        found = sizes(case, [layered("dW_x", layer, 1, q)])
        yield vanishing(f"what the first update adds to {where}", found, "")
    yield vanishing("f_1 - f_0", sizes(case, [change(stepped("f", 1, q), stepped("f", 0, q))]), "")


def _notes(case: Case) -> Iterator[str]:
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
