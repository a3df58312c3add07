"""What tpcalc says of a program, as claims that numbers may contradict; refusals are counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import tpcalc as tp
from tests.fuzz.judge import Claim, Heavy, Number, Pair, Size, Zero
from tpcalc.errors import TpcalcError
from tpcalc.results import Status

__all__ = ["Case", "Named", "Subject", "claims"]

UNSURE = (Status.RARE, Status.TOLERANCE_NOT_REACHED)
Named = tuple[str, str, Claim]  # what it is of, what was said, and the claim


@dataclass(frozen=True)
class Subject:
    """What is said of a case, and what numbers say.

    Args:
        claims: What tpcalc says.
        sample: Takes names and a level, and gives numbers at a small and at a large size.
    """

    claims: list[Named]
    sample: Callable[[set[str], int], dict[str, Pair]]


@dataclass
class Case:
    """What became of a case; a line of the file of results."""

    family: str
    seed: int
    status: str = "checked"
    orders: int = 0
    exact: int = 0
    limits: int = 0
    zeros: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    doubts: list[dict[str, str]] = field(default_factory=list)
    contradictions: list[dict[str, str]] = field(default_factory=list)
    note: str = ""

    def ask(self, what: str, answer: Callable[[], Any]) -> Any:
        """An answer; None where it is refused, which is counted."""
        try:
            return answer()
        except TpcalcError as error:
            self.refused(what, error)
            return None

    def refused(self, what: str, error: TpcalcError) -> None:
        """Count a refusal by its reason."""
        text = re.sub(r"^the scalar .*? grows|^.*? depends on", "...", error.message)
        self.refusals[f"{what}: {type(error).__name__}: {text[:100]}"] += 1


def claims(program: tp.Program, case: Case) -> Iterator[Named]:
    """The orders and the limits of all outputs."""
    orders = case.ask("orders", lambda: tp.orders(program))
    for name, order in (orders or {}).items():
        case.orders += 1
        case.exact += order.status == "exact"
        if order.zero:
            yield name, "order 0", Zero()
        elif order.n is not None:
            power = float(order.n.constant)
            yield name, f"order {order}", Size(power, order.status != "exact")
    rescale = case.seed % 2 == 1
    names = [name for name, _ in program.outputs]
    try:
        yield from _limits(tp.limit(program, rescale=rescale), case)
    except TpcalcError:  # whose fault is it?
        for name in names:
            found = case.ask(
                "limit", lambda name=name: tp.limit(program, outputs=[name], rescale=rescale)
            )
            if found is not None:
                yield from _limits(found, case)


def _limits(found: tp.Limit, case: Case) -> Iterator[Named]:
    for lacking in found.table.uncovered:
        case.refusals[f"limit: {re.sub(r'[0-9]+', '#', lacking.reason)[:100]}"] += 1
    for row in found.table.scalars:
        case.limits += 1
        text = f"limit {row.estimate} n^({row.n_power}) {row.note}"
        known = row.estimate.status not in UNSURE
        if row.name.startswith("heavy") and row.estimate.std is not None and known:
            yield row.name, text, Heavy()
        elif known:
            yield row.name, text, Number(float(row.n_power.constant or 0), row.estimate)
        if row.estimate.value == row.estimate.stderr == 0 and row.estimate.std is None:
            case.zeros += 1
            if row.note.startswith("of size n^("):
                power = float(Fraction(row.note.split("(")[1].split(")")[0]))
                yield row.name, text, Size(power, upper=True)
    yield from _vectors(found, case)


def _vectors(found: tp.Limit, case: Case) -> Iterator[Named]:
    for row in found.table.vectors:
        case.limits += 1
        power, second = float(row.n_power.constant or 0), row.second_moment
        text = f"limit n^({row.n_power}) Z, E Z = {row.mean}, E Z^2 = {second}"
        known = second.status not in UNSURE
        if row.name.startswith("heavy") and known:
            yield row.name, text, Heavy()
        elif known:
            yield row.name, text, Number(power, row.mean, 1, vector=True)
            yield row.name, text, Number(power, second, 2, vector=True)
        if second.value > 0:
            yield row.name, text, Size(power, upper=second.value < 8 * second.stderr)
        else:
            case.zeros += 1
