"""Theorems as rows: hypotheses, claims, and the function that asks one about a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

from tpcalc.docstrings import named_after
from tpcalc.networks.network import Architecture
from tpcalc.results import Answer, Claim, Hypothesis, Samples, Theorem, confirmed
from tpcalc.sources import INTEGRABLE
from tpcalc.theorems.integrable.predicates.case import Case, asked
from tpcalc.theorems.integrable.predicates.setting import SUPPORTED, one_sample
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.training import Routine, Training

Row = TypeVar("Row")
Made = TypeVar("Made", bound=Callable[..., object])
Own = ParamSpec("Own")
Rest = ParamSpec("Rest")
Claims = Callable[[Case], Iterable[Claim]]
Condition = Callable[[Case], Hypothesis]


@dataclass(frozen=True)
class Statement:
    """A theorem as a row.

    Args:
        title: What it says, in a line.
        item: Its place in the paper.
        conditions: Its hypotheses, beside ``setting``, without which nothing is asked.
        setting: The first of them.
        holds: Whether what it asks of exponents is so.
        smoothness: What the proof needs, and the exponents do not where ``spares`` says so: claims
            are asked all the same.
        spares: See there.
        notes: What a reader should know besides.
        otherwise: Claims where hypotheses are not met.
        about: Whether it is about the parameterization of a network.
        near: Whether it is told as well where the parameterization is all that is missing.
        name: The name of its function.
        claims: Its claims beside what is derived.
    """

    title: str
    item: str
    conditions: tuple[Condition, ...]
    setting: Condition = one_sample
    holds: Callable[[Case], bool] = lambda case: True
    smoothness: Condition | None = None
    spares: Callable[[Case], bool] = lambda case: case.activation.degree == 1
    notes: Callable[[Case], Iterable[str]] = lambda case: ()
    otherwise: Callable[[Case, tuple[Hypothesis, ...]], Iterable[Claim]] = lambda case, lacking: ()
    about: Callable[[Case], bool] = lambda case: True
    near: bool = False
    name: str = ""
    claims: Claims = lambda case: ()

    def of(self, claims: Claims) -> Statement:
        """The row with its claims, under their name."""
        return replace(self, name=claims.__name__, claims=claims)

    def answer(self, case: Case) -> Theorem:
        """Its answer: conditions asked, claims beside what is derived."""
        hypotheses = [self.setting(case)]
        spared: tuple[Hypothesis, ...] = ()
        said: list[str] = []
        if case.plain:
            hypotheses += [condition(case) for condition in self.conditions]
            if self.smoothness is not None:
                hypotheses.append(rough := self.smoothness(case))
                spared = (rough,) if not rough.met and self.spares(case) else ()
            said += [*self.notes(case), *case.notes]
        missing = tuple(each for each in hypotheses if not each.met)
        if missing == spared:
            stated = tuple(self.claims(case))
            if spared:
                said.insert(0, SUPPORTED.format(case.activation.degree))
        else:
            stated = tuple(self.otherwise(case, missing)) if case.plain else ()
        answer: Answer = "outside"
        if not missing:
            answer = confirmed(stated) if self.holds(case) else "does not hold"
        item, told = INTEGRABLE.at(self.item), tuple(said)
        return Theorem(self.name, self.title, item, answer, tuple(hypotheses), stated, told)


def asked_by(
    make: Callable[Own, Row],
) -> Callable[
    [Callable[Concatenate[Row, Made, Rest], Theorem]],
    Callable[Own, Callable[[Made], Callable[Rest, Theorem]]],
]:
    """Functions of rows: each has the name and the words of what stands below its row."""

    def by(
        ask: Callable[Concatenate[Row, Made, Rest], Theorem],
    ) -> Callable[Own, Callable[[Made], Callable[Rest, Theorem]]]:
        _, _, *rest = signature(ask).parameters.values()
        own = signature(ask).replace(parameters=rest)

        def of(*args: Own.args, **kwargs: Own.kwargs) -> Callable[[Made], Callable[Rest, Theorem]]:
            row = make(*args, **kwargs)

            def under(made: Made) -> Callable[Rest, Theorem]:
                def called(*args: Rest.args, **kwargs: Rest.kwargs) -> Theorem:
                    return ask(row, made, *args, **kwargs)

                ROWS[made.__name__] = row, made
                found: Callable[Rest, Theorem] = named_after(called, made, own, ask.__doc__)
                return found

            return under

        of.__doc__ = ask.__doc__
        return of

    return by


ROWS: dict[str, tuple[Any, Any]] = {}
"""Every row with what stands below it, by the name of the function that asks about it."""


@asked_by(Statement)
def theorem(
    row: Statement,
    claims: Claims,
    architecture: Architecture | Training,
    parameterization: Parameterization | str | None = None,
    data: Samples | None = None,
    *,
    derive: bool = True,
    **settings: Unpack[Routine],
) -> Theorem:
    """A theorem: a row, and the claims that stand below it.

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
    """
    case = asked(architecture, parameterization, data, settings, derive=derive)
    return row.of(claims).answer(case)
