"""Figures of benchmarks: kept in ``figures.json``, shown on ``docs/benchmarks.md``, made of it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).with_suffix(".json")
PAGE = ROOT / "docs" / "benchmarks.md"
GRID = "activations"  # the question whose cases are a table of their own
COLUMNS = ("case", "time", "error", "peer", "ratio", "machine", "commit")
UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
INTRODUCTION = """# Benchmarks

The latest figure of each case. `python -m tests.benchmarks --write` measures, keeps what it finds
in `tests/benchmarks/figures.json` and writes this page. A ratio says how many times as long the
peer takes, in the same run. Networks have three hidden layers of tanh in μP and one sample a step
where nothing else is said. Four reads are those of its directions that a product needs, at the
rate of one core; GEMM is a product of numpy with as many operations.
"""

# What benchmarks have measured in this process: rows of ``figures.json``, newest last.
measured: list[dict[str, Any]] = []


def figure(
    question: str,
    case: str,
    seconds: float,
    *,
    error: float | None = None,
    peer: tuple[str, float] | None = None,
) -> None:
    """A figure of a benchmark, beside the seconds of a peer in the same run."""
    row = {"question": question, "case": case, "time": _digits(seconds), "error": _digits(error)}
    named = {"peer": "", "ratio": None}
    if peer is not None:
        ratio = _digits(peer[1] / seconds)
        named = {"peer": f"{peer[0]}, {duration(peer[1])}", "ratio": ratio}
    measured.append(row | named)


def fastest(
    run: Callable[[], object],
    rounds: int = 3,
    clock: Callable[[], float] = time.perf_counter,
    warm: bool = True,
) -> float:
    """Seconds of the fastest round; what is warm has been called before, which compiles."""
    if warm:
        run()
    times = []
    for _ in range(rounds):
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)


def read() -> dict[str, Any]:
    """What is kept: machines by letter, titles of questions, and rows."""
    found: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found


def replaced(
    kept: dict[str, Any],
    rows: list[dict[str, Any]],
    machine: str,
    commit: str,
    add: bool = False,
) -> dict[str, Any]:
    """What is kept with new figures of its cases, and with new cases if told so."""
    machines = dict(kept["machines"])
    letters = {text: letter for letter, text in machines.items()}
    letter = letters.get(machine, chr(max(map(ord, machines)) + 1))
    found = {(row["question"], row["case"]): row for row in kept["rows"]}
    for row in rows:
        if row["question"] not in kept["questions"]:
            raise KeyError(f"{KEPT.name} has no question {row['question']!r}")
        if add or (row["question"], row["case"]) in found:
            found[row["question"], row["case"]] = row | {"machine": letter, "commit": commit}
    used = {row["machine"] for row in found.values()}
    machines = {key: text for key, text in (machines | {letter: machine}).items() if key in used}
    return kept | {"machines": machines, "rows": list(found.values())}


def page(kept: dict[str, Any]) -> str:
    """The page of what is kept: one table for a question."""
    parts = [INTRODUCTION]
    parts += [f"- {letter}: {text}." for letter, text in kept["machines"].items()]
    for key, title in kept["questions"].items():
        rows = [row for row in kept["rows"] if row["question"] == key]
        columns, lines = _grid(rows) if key == GRID else (COLUMNS, [_cells(row) for row in rows])
        parts += [f"\n## {title}", _line(columns), _line(["---"] * len(columns))]
        parts += map(_line, lines)
    return "\n".join(parts) + "\n"


def _grid(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Of cases "name, depth, inputs" a line for each name: milliseconds and ratios of depths."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        name, _, inputs = row["case"].split(", ")
        found.setdefault(name, {}).setdefault(inputs, []).append(row)
    sizes = list(dict.fromkeys(size for cells in found.values() for size in cells))
    columns = ["case", *(f"{size} inputs: ms (ratio)" for size in sizes), "machine", "commit"]
    lines = []
    for name, cells in found.items():
        own = []
        for some in (cells[size] for size in sizes):
            times = " / ".join(_two(1e3 * row["time"]) for row in some)
            ratios = " / ".join(_two(row["ratio"]) for row in some if row["ratio"] is not None)
            own.append(f"{times} ({ratios})" if ratios else times)
        lines.append([name, *own, some[0]["machine"], some[0]["commit"]])
    return columns, lines


def keep(add: bool = False) -> None:
    """Keep what this process measured, and write the page."""
    write(replaced(read(), measured, this_machine(), this_commit(), add))


def write(kept: dict[str, Any]) -> None:
    """Keep figures, one on a line, and write their page."""
    rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in kept["rows"])
    rest = json.dumps({**kept, "rows": []}, ensure_ascii=False, indent=1)
    KEPT.write_text(rest.replace('"rows": []', f'"rows": [\n{rows}\n ]') + "\n", encoding="utf-8")
    PAGE.write_text(page(kept), encoding="utf-8")


def duration(seconds: float) -> str:
    """Seconds for reading."""
    unit, size = next((pair for pair in UNITS if seconds >= pair[1]), UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


def this_machine() -> str:
    """What is known of the processor, and the cores that this process may use."""
    lines = Path("/proc/cpuinfo")
    names = lines.read_text(encoding="utf-8").splitlines() if lines.exists() else []
    name = next((line.split(":")[1].strip() for line in names if line.startswith("model name")), "")
    return f"{name or platform.processor() or platform.machine()}, {_cores()} cores"


def this_commit() -> str:
    """The commit that is measured, with a plus where the tree has changes of its own."""
    words = ["git", "describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=7"]
    return subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def _digits(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.3g}")


def _two(number: float) -> str:
    return f"{number:.0f}" if number >= 99.5 else f"{number:.2g}"


def _cores() -> int:
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _cells(row: dict[str, Any]) -> list[str]:
    error = "" if row["error"] is None else f"{row['error']:.1e}".replace("e-0", "e-")
    ratio = row["ratio"]
    shown = "" if ratio is None else _two(ratio)
    return [
        row["case"],
        duration(row["time"]),
        error,
        row["peer"],
        shown,
        row["machine"],
        row["commit"],
    ]


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")
