"""Hostile inputs at every door: ``python -m tests.fuzz.doors --cases 5000``.

One process warms up and forks; each case is a child of its own. ``--only studies:17`` shows one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # children of a process with threads would hang

from tests.fuzz.doors import children
from tests.fuzz.doors.cases import FAMILIES, chosen, made

WARM = (
    "check mlp --depth 1 --samples 1 --steps 1",
    "limit mlp --depth 1 --samples 1 --steps 1 --threads 1",
    "limit mlp --depth 1 --samples 1 --steps 0 --method particles --particles 16 --replicates 2 --threads 1",
    "limit resnet --depth 1 --samples 1 --steps 0",
    "limit resnet --depth 2,oo --param depth-mup --nonlin post --steps 0 --samples 1",
    "check resnet --depth L --hurst 3/4 --alpha 3/4 --nonlin between --layers 2",
    "kernel mlp --depth 1 --samples 2",
    "nlc mlp --depth 1 --widths 4 --seeds 1 --inputs 4",
    "signal relu --depth 5",
    "sheet relu",
    "simulate mlp --depth 1 --samples 1 --steps 1 --widths 4 --seeds 2 --threads 1",
    "report mlp --depth 1 --samples 1 --steps 0 --widths 4,8 --seeds 2 --out report.html",
    "transfer mlp --depth 1 --steps 1 --samples 1 --rates 1 --widths 4 --seeds 1",
    "solve mlp --depth 1 --deep 0",
    "phases mlp --depth 1 --steps 1 --param ac:0,1/2,a;c --box a=0:1 --box c=-1:0 --svg p.svg",
)


def warm() -> None:
    """Import and compile here what children need."""
    import torch

    from tests.fuzz.doors.calls import examples
    from tests.fuzz.doors.cases import Case, programs

    torch.set_num_threads(1)
    examples()
    programs()
    null = os.open(os.devnull, os.O_WRONLY)
    kept = os.dup(1), os.dup(2)
    os.dup2(null, 1), os.dup2(null, 2)
    for line in WARM:
        children._command(Case("warm", 0, line.split()), Path.cwd())
    sys.stdout.flush(), sys.stderr.flush()
    os.dup2(kept[0], 1), os.dup2(kept[1], 2)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.doors", description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first number")
    parser.add_argument("--family", nargs="+", choices=tuple(FAMILIES))
    parser.add_argument("--only", help="one case, family:number, shown with what it prints")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--file", type=Path, help="a line of JSON for each case")
    given = parser.parse_args()
    names = list(chosen(given.cases, given.first))
    names = [one for one in names if not given.family or one[0] in given.family]
    if given.only:
        family, _, seed = given.only.partition(":")
        names = [(family, int(seed))]
    with tempfile.TemporaryDirectory(prefix="fz") as place:
        os.chdir(place)
        if not given.only or names[0][0] == "python":
            warm()
        found = ends(names, Path(place), given.jobs, given.file)
        if given.only:
            show(names[0], Path(place))
        os.chdir("/")
    print(summary(found))
    return int(any(one["kind"] for one in found))


def ends(
    names: list[tuple[str, int]], place: Path, jobs: int, file: Path | None = None
) -> list[dict[str, Any]]:
    """How cases end, shared among children that have children of their own."""
    readers, started = [], []
    for number in range(jobs):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            with os.fdopen(writer, "w") as out:
                for family, seed in names[number::jobs]:
                    case = made(family, seed)
                    ended = children.run(case, place / f"w{number}")
                    out.write(json.dumps(vars(ended)) + "\n")
                    out.flush()
            os._exit(0)
        os.close(writer)
        readers.append(os.fdopen(reader))
        started.append(child)
    found = []
    import selectors

    with selectors.DefaultSelector() as waiting:
        for reader in readers:
            waiting.register(reader, selectors.EVENT_READ)
        while waiting.get_map():
            for key, _ in waiting.select():
                line = key.fileobj.readline()
                if not line:
                    waiting.unregister(key.fileobj)
                    continue
                found.append(json.loads(line))
                if file:
                    with file.open("a") as kept:
                        kept.write(line)
    for child in started:
        os.waitpid(child, 0)
    return found


def show(name: tuple[str, int], place: Path) -> None:
    print(made(*name))
    for stream in ("stdout", "stderr", "error", "innermost"):
        path = place / "w0" / stream
        if path.exists():
            print(f"--- {stream}\n{path.read_bytes().decode(errors='replace')[-3000:]}")


def summary(found: list[dict[str, Any]]) -> str:
    """Failures by kind, with one case each."""
    kinds = defaultdict(list)
    for one in found:
        if one["kind"]:
            kinds[one["kind"]].append(one)
    lines = []
    for kind, those in sorted(kinds.items(), key=lambda item: -len(item[1])):
        lines += [
            f"{len(those):5} {kind}",
            f"        {those[0]['told'][:400]}",
            f"      {those[0]['told_case'][:500]}",
        ]
    codes = Counter(one["code"] for one in found)
    seconds = sum(one["seconds"] for one in found)
    lines.append(f"{len(found)} cases, {seconds:.0f} s of CPU, exit codes {dict(codes)}")
    families = defaultdict(list)
    for one in found:
        families[one["name"].partition(":")[0]].append(one["seconds"])
    lines += [
        f"  {name}: {len(took)} cases, {sum(took) / len(took):.3f} s each, most {max(took):.1f}"
        for name, took in families.items()
    ]
    lines.append(f"{sum(map(len, kinds.values()))} wrong, {len(kinds)} kinds")
    return "\n".join(lines)


if __name__ == "__main__":
    began = time.monotonic()
    code = main()
    print(f"{time.monotonic() - began:.0f} s")
    raise SystemExit(code)
