"""What limits are covered: ``python -m tests.grids --minutes 60 --out docs/theory/refusals.md``.

Each cell is a line of the file of results; cells that are there already are not run again, so that
a run can be stopped, continued, and shared by several processes, each with a file of its own:
``--share 1/2 --file one.jsonl`` and ``--share 2/2 --file two.jsonl``. ``--minutes 0 --read`` makes
the page of all of them.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.grids.cells import cells
from tests.grids.examine import examine, kind
from tests.grids.page import rewrite

SECONDS = 240.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.grids", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="start no cell after these")
    parser.add_argument("--share", default="1/1", metavar="K/M", help="every M-th cell, from K")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="CPU time of one cell")
    parser.add_argument("--file", type=Path, default=Path("grids.jsonl"))
    parser.add_argument("--read", type=Path, nargs="*", default=[], help="more files of results")
    parser.add_argument("--out", type=Path, help="the page whose tables are written anew")
    chosen = parser.parse_args()
    found = {
        _key(line["cell"]): line for file in (chosen.file, *chosen.read) for line in _read(file)
    }
    part, parts = (int(number) for number in chosen.share.split("/"))
    end = time.monotonic() + 60 * chosen.minutes
    wanted = list(cells())
    random.Random(0).shuffle(wanted)  # a run that is stopped has seen some of all
    for cell in wanted[part - 1 :: parts]:
        if time.monotonic() > end:
            break
        key = _key(asdict(cell))
        if key in found:
            continue
        found[key] = examine(cell, chosen.seconds)
        with chosen.file.open("a") as file:
            file.write(json.dumps(found[key]) + "\n")
    if chosen.out:
        rewrite(chosen.out, list(found.values()))
    print(len(found), "of", len(cells()), dict(Counter(map(kind, found.values()))))


def _key(cell: dict[str, Any]) -> str:
    return json.dumps(cell, sort_keys=True)


def _read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


if __name__ == "__main__":
    main()
