"""The theorems of the paper by name, and those that are about a given network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from tpcalc.docstrings import like
from tpcalc.networks.network import Architecture
from tpcalc.results import Samples, Theorem, Verdict
from tpcalc.shown import Rows
from tpcalc.theorems.integrable.predicates import alternatives, hybrid, llr, naive, start
from tpcalc.theorems.integrable.predicates.case import Case, asked
from tpcalc.theorems.integrable.predicates.setting import integrable
from tpcalc.theorems.integrable.predicates.statement import ROWS, Statement, theorem
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.training import Routine, Training

_IN_ORDER = (
    *(naive.trivial_naive_ip, naive.degenerate),
    *(llr.llr_necessary, llr.nontrivial_stable, llr.linearizable),
    *(hybrid.equiv_hp, hybrid.equiv_hpz),
    *(alternatives.collapse, alternatives.weak_data_dependence),
    *(start.stable_init, start.nontrivial_init),
)
PREDICATES: Mapping[str, Statement] = {
    name: row.of(claims)
    for name in (one.__name__ for one in _IN_ORDER)
    for row, claims in (ROWS[name],)
}


@like(theorem)
def applicable(
    architecture: Architecture | Training,
    parameterization: Parameterization | str | None = None,
    data: Samples | None = None,
    *,
    verdict: Verdict | None = None,
    derive: bool = True,
    **settings: Unpack[Routine],
) -> tuple[Theorem, ...]:
    """The theorems that are about the parameterization of a network, with their answers.

    Those whose parameterization it is are told whether their other hypotheses are met or not, and
    those that it would meet with other learning rates; all share one derivation. The definitions
    ``feature_learning`` and ``kernel_evolution`` are left out: ``check`` answers them by layer.

    Args:
        verdict: What ``check`` found of this network: nothing is derived besides, and claims about
            numbers stay without a derived side.
        derive: Whether claims are derived from the program.

    Returns:
        The answers: what holds first, what is outside last. None for a network that is not fully
        connected, nor for a run whose powers are those of single parameters.

    Source: Hajjar, Chizat, Giraud, Training integrable parameterizations.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> for found in applicable(MLP(3, "tanh"), "naive-ip", derive=False):
        ...     print(found.name, found.answer)
        trivial_naive_ip holds
        stable_init holds
        nontrivial_init does not hold
        llr_necessary outside
    """
    run = architecture
    if isinstance(run, Training) and run.parameterization.own is not None:
        return Rows(())  # theorems are about tables over layers
    case = asked(run, parameterization, data, settings, derive=derive, given=verdict)
    if not case.plain:
        return Rows(())
    found = [theorem for each in PREDICATES.values() if (theorem := _told(each, case)) is not None]
    order = ("holds", "not confirmed", "does not hold", "outside")
    return Rows(sorted(found, key=lambda theorem: order.index(theorem.answer)))


def _told(predicate: Statement, case: Case) -> Theorem | None:
    if predicate.about(case):
        return predicate.answer(case)
    if predicate.near and integrable(case).met:
        theorem = predicate.answer(case)
        if len(theorem.missing) == 1:
            return theorem
    return None
