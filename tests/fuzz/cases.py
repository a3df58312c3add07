"""One case: a program, all that tpcalc says of it, and networks that may contradict it."""

from __future__ import annotations

import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import tpcalc as tp
from tests.clock import OutOfTime, cpu_time
from tests.fuzz.judge import Claim, Heavy, Number, Pair, Size, Zero, doubt
from tests.fuzz.networks import BIG, SMALL, sample
from tests.fuzz.programs import ASSUMED, NETWORKS, build
from tests.fuzz.trainings import TRAININGS, training
from tpcalc.errors import TpcalcError
from tpcalc.program.program import prune
from tpcalc.results import Status

__all__ = ["FAMILIES", "Case", "examine"]

FAMILIES = (*NETWORKS, *TRAININGS, *ASSUMED)
SECONDS = 40.0
SUSPECT, SURE = 4.0, 5.0  # standard errors: of a first doubt, and of its confirmation
UNSURE = (Status.RARE, Status.TOLERANCE_NOT_REACHED)


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


def examine(family: str, seed: int, seconds: float = SECONDS) -> Case:
    """Build a case, ask tpcalc, and compare; doubts are confirmed at larger widths."""
    case = Case(family, seed)
    try:
        with cpu_time(seconds):
            program = (training if family in TRAININGS else build)(family, seed)
            claims = list(_claims(program, case))
        with cpu_time(3 * seconds):
            doubts = _doubts(claims, program, SMALL, seed)
            case.doubts = [_text(*one[:2]) for one in doubts]
        if doubts:
            with cpu_time(10 * seconds):
                before = {one[0]: data for one, _, data in doubts}
                found = _doubts([one for one, *_ in doubts], program, BIG, seed, before)
                case.contradictions = [_text(*one[:2]) for one in _unexplained(found, claims)]
    except TpcalcError as error:  # of the program itself
        case.status = "refused"
        case.refusals[_reason("program", error)] += 1
    except OutOfTime:
        case.status = "timeout"
    except Exception:
        case.status, case.note = "crash", traceback.format_exc(limit=-6)
    return case


Named = tuple[str, str, Claim]
Doubt = tuple[Named, str, Pair]


def _doubts(
    claims: list[Named],
    program: tp.Program,
    level: int,
    seed: int,
    before: Mapping[str, Pair] | None = None,
) -> list[Doubt]:
    """The claims that networks of a level speak against, why, and what these networks are."""
    wanted = {one[0] for one in claims}
    kept = tuple(output for output in program.outputs if output[0] in wanted)
    if not kept:
        return []
    data = sample(prune(replace(program, outputs=kept)), level, seed)
    found = []
    for one in claims:
        small, large = data[one[0]]
        earlier = None if before is None else before[one[0]]
        text = doubt(one[2], small, large, SUSPECT if before is None else SURE, earlier)
        if text:
            found.append((one, text, (small, large)))
    return found


def _unexplained(found: list[Doubt], claims: list[Named]) -> list[Doubt]:
    """Without slopes of what is on its way to a number, and that number is not doubted.

    A small limit is reached late: until then networks show a larger term that vanishes.
    """
    doubted = {(name, claim.power) for (name, _, claim), *_ in found if isinstance(claim, Number)}
    numbers = {(name, claim.power) for name, _, claim in claims if isinstance(claim, Number)}
    return [
        one
        for one in found
        if not isinstance(one[0][2], Size) or (one[0][0], one[0][2].power) not in numbers - doubted
    ]


def _text(one: Named, text: str) -> dict[str, str]:
    return {"output": one[0], "said": one[1], "found": text}


def _reason(what: str, error: TpcalcError) -> str:
    text = re.sub(r"^the scalar .*? grows|^.*? depends on", "...", error.message)
    return f"{what}: {type(error).__name__}: {text[:100]}"


def _answer(what: str, case: Case, ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except TpcalcError as error:
        case.refusals[_reason(what, error)] += 1
        return None


def _claims(program: tp.Program, case: Case) -> Iterator[Named]:
    orders = _answer("orders", case, lambda: tp.orders(program))
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
            found = _answer(
                "limit", case, lambda name=name: tp.limit(program, outputs=[name], rescale=rescale)
            )
            if found is not None:
                yield from _limits(found, case)


def _limits(found: tp.Limit, case: Case) -> Iterator[Named]:
    for row in found.table.scalars:
        case.limits += 1
        text = f"limit {row.estimate} n^({row.n_power}) {row.note}"
        known = row.estimate.status not in UNSURE
        if row.name.startswith("heavy") and row.estimate.std is not None and known:
            yield row.name, text, Heavy()
        elif known:
            yield row.name, text, Number(float(Fraction(row.n_power)), row.estimate)
        if row.estimate.value == row.estimate.stderr == 0 and row.estimate.std is None:
            case.zeros += 1
            if row.note.startswith("of size n^("):
                power = float(Fraction(row.note.split("(")[1].split(")")[0]))
                yield row.name, text, Size(power, upper=True)
    for row in found.table.vectors:
        case.limits += 1
        power, second = float(Fraction(row.n_power)), row.second_moment
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
