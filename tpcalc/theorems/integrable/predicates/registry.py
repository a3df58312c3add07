"""The theorems of the paper by name, and those that are about a given network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Unpack

from tpcalc.networks.network import Architecture
from tpcalc.results import Samples, Theorem, Verdict
from tpcalc.shown import Rows
from tpcalc.theorems.integrable.predicates.case import Case, asked
from tpcalc.theorems.integrable.predicates.collapse import collapse, is_non_centered
from tpcalc.theorems.integrable.predicates.degenerate import degenerate
from tpcalc.theorems.integrable.predicates.hybrid import equiv_hp, equiv_hpz, is_llr_or
from tpcalc.theorems.integrable.predicates.linearizable import linearizable
from tpcalc.theorems.integrable.predicates.necessary import llr_necessary
from tpcalc.theorems.integrable.predicates.setting import integrable, is_llr, is_naive, named
from tpcalc.theorems.integrable.predicates.stable import nontrivial_stable
from tpcalc.theorems.integrable.predicates.start import nontrivial_init, stable_init
from tpcalc.theorems.integrable.predicates.trivial import trivial_naive_ip
from tpcalc.theorems.integrable.predicates.weak import is_ip_bias, weak_data_dependence
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.training import Routine, Training


@dataclass(frozen=True)
class Predicate:
    """A theorem, and the parameterizations that it is about.

    Args:
        answer: Its answer for a network.
        about: Whether it is about the parameterization of a network.
        near: Whether it is told as well where the parameterization is all that is missing.
    """

    answer: Callable[[Case], Theorem]
    about: Callable[[Case], bool]
    near: bool = False


def _linear(case: Case) -> bool:
    activation = case.activation
    rest = activation.zero_at_zero.met and activation.slope_at_zero.met
    return rest and named(case, "ip-llr", p=1).met


def _biased(case: Case) -> bool:
    return case.bias != "none" and is_ip_bias(case).met


PREDICATES: Mapping[str, Predicate] = {
    "trivial_naive_ip": Predicate(trivial_naive_ip.of, lambda case: is_naive(case).met, near=True),
    "degenerate": Predicate(
        degenerate.of, lambda case: not case.activation.zero_at_zero.met and is_naive(case).met
    ),
    "llr_necessary": Predicate(llr_necessary.of, lambda case: integrable(case).met),
    "nontrivial_stable": Predicate(nontrivial_stable.of, lambda case: is_llr(case).met, near=True),
    "linearizable": Predicate(linearizable.of, _linear),
    "equiv_hp": Predicate(equiv_hp.of, lambda case: is_llr_or(case, "hp").met),
    "equiv_hpz": Predicate(equiv_hpz.of, lambda case: is_llr_or(case, "hpz").met),
    "collapse": Predicate(collapse.of, lambda case: is_non_centered(case).met),
    "weak_data_dependence": Predicate(weak_data_dependence.of, _biased),
    "stable_init": Predicate(stable_init.of, lambda case: True),
    "nontrivial_init": Predicate(nontrivial_init.of, lambda case: True),
}


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
        architecture: The network, or a training run (``tp.Training``) and nothing of it besides.
        parameterization: A catalogue name or a parameterization.
        data: Training data; None: generic data.
        verdict: What ``check`` found of this network: nothing is derived besides, and claims about
            numbers stay without a derived side.
        derive: Whether claims are derived from the program.
        settings: As ``tp.Training`` takes them: steps (2), lr, loss, batch, ...

    Returns:
        The answers: what holds first, what is outside last. None for a network that is not fully
        connected, nor for a run whose powers are those of single parameters.

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UnknownName: No such parameterization or loss.

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


def _told(predicate: Predicate, case: Case) -> Theorem | None:
    if predicate.about(case):
        return predicate.answer(case)
    if predicate.near and integrable(case).met:
        theorem = predicate.answer(case)
        if len(theorem.missing) == 1:
            return theorem
    return None
