"""One case: what tpcalc says of something random, and networks that may contradict it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.clock import OutOfTime, cpu_time
from tests.fuzz import blocks, own
from tests.fuzz.claims import Case, Named, Subject, claims
from tests.fuzz.judge import Number, Pair, Size, doubt
from tests.fuzz.networks import BIG, SMALL, sample
from tests.fuzz.programs import ASSUMED, NETWORKS, build
from tests.fuzz.trainings import TRAININGS, training
from tpcalc.errors import TpcalcError
from tpcalc.program.program import prune

__all__ = ["FAMILIES", "Case", "examine"]

WRITTEN: Mapping[str, Callable[[int, Case], Subject]] = {
    "blocks": blocks.subject,
    "own": own.subject,
}
FAMILIES = (*NETWORKS, *TRAININGS, *WRITTEN, *ASSUMED)
SECONDS = 40.0
SUSPECT, SURE = 4.0, 5.0  # standard errors: of a first doubt, and of its confirmation


def examine(family: str, seed: int, seconds: float = SECONDS) -> Case:
    """Build a case, ask tpcalc, and compare; doubts are confirmed at larger sizes."""
    case = Case(family, seed)
    try:
        with cpu_time(seconds):
            subject = WRITTEN.get(family, _of_program)(seed, case)
        with cpu_time(3 * seconds):
            doubts = _doubts(subject, subject.claims, SMALL)
            case.doubts = [_text(*one[:2]) for one in doubts]
        if doubts:
            with cpu_time(10 * seconds):
                before = {one[0]: data for one, _, data in doubts}
                found = _doubts(subject, [one for one, *_ in doubts], BIG, before)
                sure = _unexplained(found, subject.claims)
                case.contradictions = [_text(*one[:2]) for one in sure]
    except TpcalcError as error:  # of the program itself
        case.status = "refused"
        case.refused("program", error)
    except OutOfTime:
        case.status = "timeout"
    except Exception:
        case.status, case.note = "crash", traceback.format_exc(limit=-6)
    return case


def _of_program(seed: int, case: Case) -> Subject:
    family = case.family
    program = (training if family in TRAININGS else build)(family, seed)

    def numbers(wanted: set[str], level: int) -> dict[str, Pair]:
        kept = tuple(output for output in program.outputs if output[0] in wanted)
        return sample(prune(replace(program, outputs=kept)), level, seed)

    return Subject(list(claims(program, case)), numbers)


Doubt = tuple[Named, str, Pair]


def _doubts(
    subject: Subject, said: list[Named], level: int, before: Mapping[str, Pair] | None = None
) -> list[Doubt]:
    """The claims that networks of a level speak against, why, and what these networks are."""
    wanted = {one[0] for one in said}
    data = subject.sample(wanted, level) if wanted else {}
    found = []
    for one in said:
        small, large = data[one[0]]
        earlier = None if before is None else before[one[0]]
        text = doubt(one[2], small, large, SUSPECT if before is None else SURE, earlier)
        if text:
            found.append((one, text, (small, large)))
    return found


def _unexplained(found: list[Doubt], said: list[Named]) -> list[Doubt]:
    """Without slopes of what is on its way to a number, and that number is not doubted.

    A small limit is reached late: until then networks show a larger term that vanishes.
    """
    doubted = {(name, claim.power) for (name, _, claim), *_ in found if isinstance(claim, Number)}
    numbers = {(name, claim.power) for name, _, claim in said if isinstance(claim, Number)}
    return [
        one
        for one in found
        if not isinstance(one[0][2], Size) or (one[0][0], one[0][2].power) not in numbers - doubted
    ]


def _text(one: Named, text: str) -> dict[str, str]:
    return {"output": one[0], "said": one[1], "found": text}
