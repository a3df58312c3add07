"""Do the tests notice small wrong changes of the code? Run by hand, from the root.

    python -m tests.mutation.run tpcalc/limit --count 100 --seed 0

Each mutant is one change of one place: a comparison turned, a sign, a term or a ``not`` dropped, a
constant one off, the branches of a condition or ``min`` and ``max`` swapped, a call left out, or
one part of what is put together of parts: an axis, a cell, a condition of a comprehension. They are
drawn with a seed, applied one at a time to a copy of the repository, and the tests of their room
(``ROOMS``, the fastest first) are run there until one fails. A mutant that all of them pass has
survived: either it changes nothing that could be observed, or a test is missing.

``--near FILE`` runs in their place the tests that are known to reach the line, the quickest first:
FILE is what ``pytest --cov=tpcalc --cov-context=test --durations=0 -vv`` printed (it needs
``pytest-cov``), and the ``.coverage`` of that run lies beside it.

Every outcome is a line of a JSON file at once, so a run that was stopped goes on where it was.
``--again`` runs those that survived once more, after tests were added; ``--list`` only prints what
the file holds. The copy lies in a temporary directory and is deleted at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
COPIED = ("tpcalc", "tests", "docs", "examples", "pyproject.toml", "README.md")
MARGIN, FACTOR = 20.0, 3.0  # seconds, and how much longer than without a mutant tests may take
NEAR = 40.0  # seconds of tests that reach a line

SLOW = (
    "tests/unit/limit/test_derive.py::test_a_vanishing_scalar_is_exactly_zero_and_says_why",
    "tests/unit/limit/test_derive.py::test_deep_programs_do_not_recurse",
    "tests/unit/limit/test_certainty.py::test_certain",
    "tests/unit/questions/test_check.py::test_a_stationary_start_says_why",
    "tests/oracles/test_verdicts.py::test_orders_case11",
    "tests/oracles/test_verdicts.py::test_whole_answers_follow_the_closed_rule",
)

BLOCKS = (
    "tests/properties/test_blocks.py",
    "tests/properties/test_block_gradients.py",
    "tests/unit/dsl/test_blocks.py",
    "tests/unit/passes/test_split.py",
)

# What is run for a mutant of a file: the longest prefix counts.
ROOMS: dict[str, tuple[str, ...]] = {
    "tpcalc/exponents": (
        "tests/unit/exponents",
        "tests/unit/questions/test_orders.py",
        "tests/unit/questions/test_phases.py",
        "tests/unit/questions/test_solve.py",
        "tests/properties/test_cover.py",
    ),
    "tpcalc/limit": (
        "tests/unit/limit/test_expand.py",
        "tests/unit/limit/test_parity.py",
        "tests/unit/limit/test_kinks.py",
        "tests/unit/limit",
        "tests/unit/questions/test_orders.py",
        "tests/unit/questions/test_solve.py",
        "tests/oracles/test_seed0_limits.py",
        "tests/properties/test_orders.py",
        *(f"--deselect={test}" for test in SLOW),
    ),
    "tpcalc/questions": (
        "tests/unit/questions/test_verdicts.py",
        "tests/unit/questions/test_phases.py",
        "tests/unit/questions/test_solve.py",
        "tests/unit/questions/test_check.py",
        "tests/oracles/test_verdicts.py",
        *(f"--deselect={test}" for test in SLOW),
    ),
    "tpcalc/limit/same.py": ("tests/unit/questions/test_equivalent.py",),
    "tpcalc/limit/degrees.py": ("tests/unit/evaluate/test_tails.py",),
    "tpcalc/integrals/exact": ("tests/unit/integrals/exact", "tests/unit/evaluate/test_expect.py"),
    "tpcalc/evaluate": ("tests/unit/evaluate",),
    "tpcalc/integrals": ("tests/unit/integrals",),
    "tpcalc/engine": ("tests/unit/engine", "tests/unit/evaluate/test_limit.py"),
    "tpcalc/program": (
        "tests/unit/program",
        "tests/properties/test_blocks.py",
        "tests/properties/test_program_text.py",
    ),
    "tpcalc/dsl": ("tests/unit/dsl",),
    "tpcalc/passes": ("tests/unit/passes", "tests/agreements/test_trained_networks.py"),
    "tpcalc/passes/split.py": BLOCKS,
    "tpcalc/passes/backward.py": (*BLOCKS, "tests/unit/passes"),
    "tpcalc/functions": ("tests/unit/functions",),
    "tpcalc/meanfield": ("tests/unit/meanfield",),
    "tpcalc/nonlinearity": ("tests/unit/nonlinearity",),
}


class Near:
    """The tests that reach a line, the quickest first.

    Args:
        printed: What pytest printed, with all durations; its ``.coverage`` lies beside it.
    """

    def __init__(self, printed: Path) -> None:
        from coverage import CoverageData

        self._data = CoverageData(str(printed.with_name(".coverage")))
        self._data.read()
        self._files = {Path(file).as_posix(): file for file in self._data.measured_files()}
        self._seconds: dict[str, float] = {}
        for seconds, test in re.findall(
            r"^([0-9.]+)s (?:setup|call) +(\S.*)$",
            printed.read_text(encoding="utf-8"),
            re.MULTILINE,
        ):
            self._seconds[test] = self._seconds.get(test, 0.0) + float(seconds)

    def __call__(self, mutant: Mutant) -> tuple[tuple[str, ...], float]:
        """The tests, and how long they take."""
        file = next((f for path, f in self._files.items() if path.endswith(mutant.path)), None)
        lines = {} if file is None else self._data.contexts_by_lineno(file)
        here = next((lines[n] for n in range(mutant.line, 0, -1) if any(lines.get(n, ()))), [])
        tests = {context.split("|")[0] for context in here if context}
        found, total = [], 0.0
        for seconds, test in sorted((self._seconds.get(test, 0.0), test) for test in tests):
            total += seconds
            if found and total > NEAR:
                break
            found.append(test)
        return tuple(found), total


class Copy:
    """A copy of the repository in which one file at a time is wrong.

    Args:
        place: An empty directory.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._stamp = time.time()
        skipped = shutil.ignore_patterns("__pycache__", ".*")
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, place / name, ignore=skipped)
            else:
                shutil.copy2(ROOT / name, place / name)

    def read(self, path: str) -> str:
        """The text of a file."""
        return (self._place / path).read_text(encoding="utf-8")

    def write(self, path: str, text: str) -> None:
        """Write a file, with a time of its own: compiled files are told apart by seconds."""
        self._stamp += 2
        (self._place / path).write_text(text, encoding="utf-8")
        os.utime(self._place / path, (self._stamp, self._stamp))

    def test(self, selection: tuple[str, ...], limit: float | None) -> tuple[str, str]:
        """Run tests until one fails.

        Args:
            selection: Arguments of pytest.
            limit: Seconds; None: any number.

        Returns:
            The outcome ("survived", "killed", "timeout"), and the test that failed.
        """
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
        process = subprocess.Popen(
            [*command, *selection],
            cwd=self._place,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            out, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return "timeout", ""
        finally:
            if process.poll() is None:  # out of time, or this run is being stopped
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        if process.returncode == 0:
            return "survived", ""
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", out, re.MULTILINE)
        return "killed", failed.group(1) if failed else out.strip()[-200:]


def _selection(path: str, rooms: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    found = [room for room in rooms if path.startswith(room)]
    if not found:
        raise SystemExit(f"{path}: no tests are named for it; add its room to ROOMS, or --tests")
    return rooms[max(found, key=len)]


def _read(record: Path) -> dict[str, dict[str, Any]]:
    """What is on record, the last outcome of each mutant."""
    if not record.exists():
        return {}
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    return {line["key"]: line for line in lines}


def _shown(known: dict[str, dict[str, Any]]) -> None:
    for line in known.values():
        if line["outcome"] in ("survived", "timeout"):
            print(f"{line['outcome']} {line['path']}:{line['line']} {line['function']}")
            print(f"    {line['before']}\n    {line['after']}")
    rooms = sorted({line["path"].rsplit("/", 1)[0] for line in known.values()})
    for room in rooms:
        own = [line["outcome"] for line in known.values() if line["path"].startswith(f"{room}/")]
        counts = ", ".join(f"{count} {name}" for name, count in sorted(Counter(own).items()))
        print(f"{room}: {len(own)} tried, {counts}")


def _files(paths: list[str]) -> list[str]:
    found = []
    for path in paths:
        own = sorted((ROOT / path).rglob("*.py")) if (ROOT / path).is_dir() else [ROOT / path]
        found += [part.relative_to(ROOT).as_posix() for part in own]
    return found


def _drawn(arguments: argparse.Namespace, known: dict[str, dict[str, Any]]) -> list[Mutant]:
    """The mutants of this run: those that survived, or new ones in the order of the seed."""
    found = [one for path in _files(arguments.paths) for one in mutants(ROOT, path)]
    found = [one for one in found if not re.search(arguments.skip, one.function)]
    if arguments.again:
        left = {key for key, line in known.items() if line["outcome"] != "killed"}
        return [one for one in found if one.key in left]
    random.Random(arguments.seed).shuffle(found)
    return [one for one in found[: arguments.count] if one.key not in known]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", help="files or directories of tpcalc")
    parser.add_argument("--count", type=int, default=50, help="how many mutants are drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, default=Path("build/mutants.jsonl"))
    parser.add_argument("--tests", nargs="+", help="what to run, in place of the map of rooms")
    parser.add_argument("--near", type=Path, help="the output of a run with coverage")
    parser.add_argument("--skip", default="(?!)", help="pattern of functions to leave alone")
    parser.add_argument("--again", action="store_true", help="those that survived, once more")
    parser.add_argument("--list", action="store_true", help="only print the record")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # stops the tests, deletes the copy
    known = _read(arguments.record)
    if not arguments.list:
        arguments.record.parent.mkdir(parents=True, exist_ok=True)
        rooms = {"": tuple(arguments.tests)} if arguments.tests else ROOMS
        with tempfile.TemporaryDirectory() as place:
            near = Near(arguments.near) if arguments.near else None
            _run(_drawn(arguments, known), Copy(Path(place)), rooms, near, arguments.record)
        known = _read(arguments.record)
    _shown(known)


def _run(
    drawn: list[Mutant],
    work: Copy,
    rooms: dict[str, tuple[str, ...]],
    near: Near | None,
    record: Path,
) -> None:
    limits: dict[tuple[str, ...], float] = {}
    for number, mutant in enumerate(drawn, 1):
        selection, seconds = near(mutant) if near else ((), 0.0)
        limit = FACTOR * seconds + 2 * MARGIN
        if not selection:
            selection = _selection(mutant.path, rooms)
            if selection not in limits:  # without a mutant: they must pass, and take this long
                begin = time.monotonic()
                outcome, failed = work.test(selection, None)
                if outcome != "survived":
                    raise SystemExit(f"tests fail without a mutant: {failed}")
                limits[selection] = FACTOR * (time.monotonic() - begin) + MARGIN
            limit = limits[selection]
        begin = time.monotonic()
        right = work.read(mutant.path)
        work.write(mutant.path, mutant.text)
        # The examples in its own docstrings come first.
        outcome, failed = work.test((mutant.path, *selection), limit)
        work.write(mutant.path, right)
        line = {
            "key": mutant.key,
            "path": mutant.path,
            "line": mutant.line,
            "function": mutant.function,
            "before": mutant.before,
            "after": mutant.after,
            "outcome": outcome,
            "test": failed,
            "seconds": round(time.monotonic() - begin, 1),
        }
        with record.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")
        print(f"{number}/{len(drawn)} {outcome} {mutant.path}:{mutant.line} {failed}", flush=True)


if __name__ == "__main__":
    main()
