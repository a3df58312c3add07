"""Random programs against networks: ``python -m tests.fuzz --minutes 5``.

Each case is a line of the file of results; cases that are there already are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

from tests.fuzz.cases import FAMILIES, SECONDS, examine

COLUMNS = ("cases", "orders", "exact", "limits", "zeros", "refusals", "doubts", "contradictions")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="start no case after these")
    parser.add_argument("--cases", type=int, help="run so many cases of each family")
    parser.add_argument("--family", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--seed", type=int, default=0, help="the first seed of each family")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="CPU time of one answer")
    parser.add_argument("--file", type=Path, default=Path("fuzz.jsonl"))
    chosen = parser.parse_args()
    found = _read(chosen.file)
    done = {(case["family"], case["seed"]) for case in found}
    end = time.monotonic() + 60 * chosen.minutes
    first = chosen.seed
    seeds = count(first) if chosen.cases is None else range(first, first + chosen.cases)
    wanted = ((family, seed) for seed in seeds for family in chosen.family)
    for family, seed in wanted:
        if time.monotonic() > end:
            break
        if (family, seed) in done:
            continue
        case = vars(examine(family, seed, chosen.seconds))
        found.append(case)
        with chosen.file.open("a") as file:
            file.write(json.dumps(case) + "\n")
        _tell(case)
    print(summary([case for case in found if case["family"] in chosen.family]))
    return int(any(case["contradictions"] for case in found))


def _read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _tell(case: dict[str, Any]) -> None:
    for one in case["contradictions"]:
        place = f"{case['family']} {case['seed']} {one['output']}"
        print(f"{place}: {one['said']}: {one['found']}", flush=True)
    if case["status"] in ("crash", "timeout"):
        print(f"{case['family']} {case['seed']}: {case['status']} {case['note']}", flush=True)


def summary(found: list[dict[str, Any]]) -> str:
    """Counts by family, and the refusals by reason."""
    lines = [
        f"{'family':12}" + "".join(f"{name:>15}" for name in (*COLUMNS, "timeouts", "crashes"))
    ]
    for family in dict.fromkeys(case["family"] for case in found):
        cases = [case for case in found if case["family"] == family]
        row = [len(cases)]
        for name in COLUMNS[1:]:
            values = [case[name] for case in cases]
            row.append(sum(v if isinstance(v, int) else _size(v) for v in values))
        row += [sum(case["status"] == word for case in cases) for word in ("timeout", "crash")]
        lines.append(f"{family:12}" + "".join(f"{value:15}" for value in row))
    reasons: Counter[str] = Counter()
    for case in found:
        reasons.update(case["refusals"])
    lines += [f"{times:6}  {reason}" for reason, times in reasons.most_common(20)]
    return "\n".join(lines)


def _size(part: Any) -> int:
    return sum(part.values()) if isinstance(part, dict) else len(part)


if __name__ == "__main__":
    raise SystemExit(main())
