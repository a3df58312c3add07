"""The tables of what is covered and what is not, as Markdown."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.grids.cells import Cell, cells
from tests.grids.examine import BROKEN, COVERED, KINDS, NUMBERS, REFUSED, kind
from tpcalc.results import Name

__all__ = ["causes", "rewrite", "tables"]

BEGIN = "<!-- The tables below are written by python -m tests.grids. -->"
Line = dict[str, Any]


def rewrite(page: Path, found: Sequence[Line]) -> None:
    """Put the tables of some results where those of a page are."""
    head, mark, _ = page.read_text(encoding="utf-8").partition(BEGIN)
    if not mark:
        raise ValueError(f"{page} does not hold the line {BEGIN}")
    page.write_text(f"{head}{BEGIN}\n\n{tables(found)}", encoding="utf-8")


def tables(found: Sequence[Line]) -> str:
    """All tables, with what was run."""
    order = {cell: place for place, cell in enumerate(cells())}
    found = sorted(found, key=lambda line: order[Cell(**line["cell"])])
    total, kinds = len(order), Counter(map(kind, found))
    parts = [
        f"{len(found)} of {total} cells were run: "
        + ", ".join(
            [f"{kinds[COVERED]} are covered", *(f"{kinds[k]} {k} ({KINDS[k]})" for k in KINDS)]
        )
        + "."
    ]
    for grid in dict.fromkeys(cell.grid for cell in cells()):
        lines = [line for line in found if line["cell"]["grid"] == grid]
        if lines:
            parts += [f"## {grid[0].upper()}{grid[1:]}", _grid(lines)]
    for letter, title in (
        (REFUSED, "What is not covered, by cause"),
        (NUMBERS, "What is covered and has no number"),
    ):
        rows = causes(found, letter)
        if rows:
            parts += [f"## {title}", *rows]
    broken = [f"- {_words(line['cell'])}: {_last(line)}" for line in found if _is(line, BROKEN)]
    if broken:
        parts += ["## Cells without an answer", "\n".join(broken)]
    return "\n\n".join(parts) + "\n"


def _grid(lines: Sequence[Line]) -> str:
    acts = list(dict.fromkeys(line["cell"]["act"] for line in lines))
    groups: dict[tuple[str, int, int], dict[str, list[Line]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for line in lines:
        cell = line["cell"]
        groups[cell["param"], cell["depth"], cell["steps"]][cell["act"]].append(line)
    size: Counter[str] = Counter(
        _key(cell.param, cell.depth, cell.steps, cell.act)
        for cell in cells()
        if cell.grid == lines[0]["cell"]["grid"]
    )
    rows = [
        [param, str(depth), str(steps)]
        + [_entry(by_act[act], size[_key(param, depth, steps, act)]) for act in acts]
        for (param, depth, steps), by_act in groups.items()
    ]
    return _table(["param", "depth", "steps", *acts], rows)


def _key(*parts: object) -> str:
    return " ".join(map(str, parts))


def _entry(lines: Sequence[Line], size: int) -> str:
    """What became of the cells of one entry: how many of each kind, ``.`` for all covered."""
    if not lines:
        return ""
    counts = Counter(map(kind, lines))
    words = [f"{counts[letter]}{letter}" for letter in KINDS if counts[letter]]
    outputs = sum(_is(line, REFUSED) and any(_of_f(line)) for line in lines)
    if outputs:
        words.insert(1, f"({outputs}f)")
    text = " ".join(words) or COVERED
    return text if len(lines) == size else f"{text} [{len(lines)} of {size}]"


def _of_f(line: Line) -> Iterable[bool]:
    return (
        Name.tabled(name).what == "f"
        for group in line["refused"]
        if group["kind"] == REFUSED
        for name in group["outputs"]
    )


def causes(found: Sequence[Line], letter: str = REFUSED) -> list[str]:
    """The causes of one kind, the most frequent first, each with its cells and the smallest one."""
    groups: dict[tuple[str, str], list[tuple[Line, Line]]] = defaultdict(list)
    for line in found:
        if not _is(line, letter):
            continue
        first = next(group for group in line["refused"] if group["kind"] == letter)
        groups[_general(first["reason"]), _operation(first["term"])].append((line, first))
    out = []
    for (reason, term), members in sorted(groups.items(), key=lambda item: -len(item[1])):
        line, first = min(members, key=lambda one: _size(one[0]["cell"]))
        seen = {
            name: ", ".join(dict.fromkeys(str(one["cell"][name]) for one, _ in members))
            for name in ("grid", "param", "act", "depth", "steps", "data", "bias", "loss")
        }
        out.append(
            f"**{len(members)} cell{'s' * (len(members) > 1)}, at `{term}`: {reason}**\n\n"
            + "- "
            + "; ".join(f"{name} {text}" for name, text in seen.items())
            + f"\n- the smallest: {_words(line['cell'])}: first `{first['outputs'][0]}` "
            + f"({len(first['outputs'])} of {line['outputs']} outputs) at `{first['node']}`, "
            + f"`{first['term']}`: {first['reason']}"
        )
    return out


def _is(line: Line, letter: str) -> bool:
    return kind(line) == letter


def _size(cell: Line) -> tuple[int, int, int]:
    return cell["steps"], cell["depth"], ("one", "batch", "turn", "fresh").index(cell["data"])


def _operation(term: str) -> str:
    found = re.match(r"\w+( \{.*?\}(?= \())?", term) if "%" in term else None
    return found[0] if found else term or "the program"


def _general(reason: str) -> str:
    """A reason without the numbers that samples gave, and without numbers of vectors."""
    reason = re.sub(r"vector \d+", "a vector", reason)
    return re.sub(r"-?\d+(\.\d+(e[-+]?\d+)?|e[-+]?\d+)", "#", reason)


def _words(cell: Line) -> str:
    network = "resnet" if "resnet" in cell["grid"] else "mlp"
    norm = " norm layer" if "norm" in cell["grid"] else ""
    outputs = ", two outputs" if cell["grid"] == "two outputs" else ""
    bias = "" if cell["bias"] == "none" else f" bias {cell['bias']}"
    steps = f"{cell['steps']} step{'s' * (cell['steps'] > 1)}"
    return (
        f"{network} depth {cell['depth']} {cell['act']}{norm}{bias}, {cell['param']}, "
        f"{steps}, data {cell['data']}, {cell['loss']}{outputs}"
    )


def _last(line: Line) -> str:
    return str(line["note"]).strip().splitlines()[-1]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)
