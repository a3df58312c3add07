"""Cases in children: each in a folder of its own, with limits, and what is wrong with its end."""

from __future__ import annotations

import json
import os
import re
import resource
import select
import shutil
import signal
import stat
import sys
import time
import traceback
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from tests.fuzz.doors.cases import Case
from tests.fuzz.doors.hostile import places

ROOT = Path(__file__).parents[3]
PACKAGE = str(ROOT / "tpcalc")
SECONDS = 20  # of the CPU
WALL = 60  # of the clock, on a machine that others use too
GIB = 2**30
MOST = 200  # letters of a line
CODES = {0, 1, 2, 3, 4, 5}
FAILED = {2, 3, 5}
OLD = "what was there before\n"
RESULTS = ("old.html", "old.md", "old.svg", "old.csv", "old.npz", "old.json", "old.parquet")
OF_USERS = re.compile(r"\S*net\.py:\d+: \w*Warning: .*\n(  .*\n)?|^\\ud800\n", re.MULTILINE)
WARNED = re.compile(r"^(\S+:\d+: )?\w*Warning: .*", re.MULTILINE)
OUTSIDE = 99  # an exit code of a child: of an error that is not one of tpcalc


@dataclass
class Ended:
    """How a case ended.

    Args:
        name: Of the case.
        kind: What was wrong, for grouping; empty: nothing.
        told: More of it.
        seconds: Of the CPU.
        code: Its exit code.
    """

    name: str
    kind: str
    told: str
    seconds: float
    code: int
    told_case: str = ""
    real: bool = False


def run(case: Case, folder: Path) -> Ended:
    """Carry a case out in a child."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "cwd").mkdir(parents=True)
    before = _prepared(case, folder / "cwd")
    sys.stdout.flush()
    resident = _resident()
    child = os.fork()
    if not child:
        _child(case, folder)
    ended, status, used = _waited(child)
    seconds = used.ru_utime + used.ru_stime
    code = os.waitstatus_to_exitcode(status)
    kind, told = "", ""
    if not ended:
        kind = f"hang: {_top(folder, 'innermost')}"
    elif code == -signal.SIGXCPU or code == -signal.SIGKILL:
        kind = f"hang on the CPU: {_top(folder, 'innermost')}"
    elif code < 0:
        kind = f"signal {-code}"
    elif used.ru_maxrss * 1024 - resident > GIB:
        kind = "memory: more than 1 GiB"
    else:
        kind, told = _wrong(case, folder, before, code)
    if kind:
        told = told or _tail(folder / "stderr")
    return Ended(case.name, kind, told, seconds, code, str(case) if kind else "", case.real)


def _prepared(case: Case, folder: Path) -> dict[str, Any]:
    """The folder of a case, and what lies in it."""
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    texts = [*(word for word in case.words if len(word) < 300), case.code]
    texts += [content[:3000].decode(errors="replace") for content in case.files.values()]
    text = " ".join(texts)
    for name in RESULTS:
        if name in text:
            (folder / name).write_text(OLD)
    places(text, folder)
    return _there(folder)


def _there(folder: Path) -> dict[str, Any]:
    """What lies in a folder: kinds of places, and contents of small files."""
    found: dict[str, Any] = {}
    for path in sorted(folder.iterdir()):
        kind = stat.S_IFMT(path.lstat().st_mode)
        small = kind == stat.S_IFREG and path.stat().st_size < 10_000_000
        found[path.name] = (kind, path.read_bytes() if small else None)
    return found


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _waited(child: int) -> tuple[bool, int, Any]:
    handle = os.pidfd_open(child)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    ended = bool(poll.poll(WALL * 1000))
    os.close(handle)
    if not ended:  # it tells where it is
        os.kill(child, signal.SIGUSR1)
        time.sleep(0.2)
        os.killpg(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # processes that it started
    return ended, status, used


# ------------------------------------------------------------------------------------ the child


def _child(case: Case, folder: Path) -> None:
    """Carry a case out and end."""
    code = OUTSIDE
    try:
        os.setsid()
        os.chdir(folder / "cwd")
        for number, name in enumerate(("/dev/null", folder / "stdout", folder / "stderr")):
            flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT
            os.dup2(os.open(name, flags, 0o600), number)
        _limits()
        if case.real:
            words = [sys.executable, "-m", "tpcalc", *case.words]
            typed = [
                word.encode("utf-8", "surrogateescape" if _escapes(word) else "replace")
                for word in words
            ]
            os.execve(
                sys.executable, typed, {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
            )
        _watch(folder)
        for number in (0, 1, 2):
            stream = open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, ("stdin", "stdout", "stderr")[number], stream)
        code = _python(case, folder) if case.code else _command(case, folder)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as error:
        _note(folder, error)
    finally:
        os._exit(code)


def _escapes(word: str) -> bool:
    return all(
        not 0xD800 <= ord(sign) < 0xDC80 and not 0xDD00 <= ord(sign) < 0xE000 for sign in word
    )


def _limits() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    for kind, soft in (
        (resource.RLIMIT_AS, pages * resource.getpagesize() + 4 * GIB),
        (resource.RLIMIT_CPU, SECONDS),
        (resource.RLIMIT_FSIZE, 64 * 2**20),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (soft, soft + (2 if kind == resource.RLIMIT_CPU else 0)))


def _watch(folder: Path) -> None:
    """Tell where the time went, when it is over."""
    import faulthandler

    file = (folder / "innermost").open("w")
    faulthandler.register(signal.SIGUSR1, file, all_threads=False)
    faulthandler.register(signal.SIGXCPU, file, all_threads=False, chain=True)
    faulthandler.enable(file, all_threads=False)


GROUP: list[Any] = []


def _command(case: Case, folder: Path) -> int:
    """What ``main`` does, with the commands read once."""
    if not GROUP:
        from tpcalc.cli.app import app

        GROUP.append(typer.main.get_command(app))
    sys.argv = ["tpcalc", *case.words]
    try:
        GROUP[0]()
    except SystemExit as end:
        if end.__cause__ is not None:
            _note(folder, end.__cause__)
        return end.code if isinstance(end.code, int) else 0 if end.code is None else OUTSIDE
    return 0


def _python(case: Case, folder: Path) -> int:
    import tpcalc as tp
    from tests.fuzz.doors.calls import execute

    with warnings.catch_warnings(record=True) as said, _allowed(tp):
        warnings.simplefilter("always")
        found = execute(case.code)
    strange = [one for one in said if PACKAGE in one.filename or "numpy" in one.filename]
    if isinstance(found, tp.errors.TpcalcError):
        print(found, file=sys.stderr)
        return found.exit_code
    if found is not None and _ours(found):
        _note(folder, found)
        return OUTSIDE
    if strange:
        print(
            f"Warning: {strange[0].message} {strange[0].filename}:{strange[0].lineno}",
            file=sys.stderr,
        )
    return 0


def _allowed(tp: Any) -> Any:
    import inspect

    known = inspect.signature(tp.use).parameters
    given = {"most_seconds": 5, "memory": 700 * 2**20}
    return tp.use(**{name: value for name, value in given.items() if name in known})


def _ours(error: BaseException) -> bool:
    """Whether an error comes out of the package."""
    trace = traceback.extract_tb(error.__traceback__)
    mine = bool(trace) and "/tests/fuzz/" in trace[-1].filename  # an object of the user
    return bool(_inner(trace)) and not mine


def _inner(trace: Any) -> list[Any]:
    return [frame for frame in trace if frame.filename.startswith(PACKAGE)]


def _note(folder: Path, error: BaseException) -> None:
    frames = _inner(traceback.extract_tb(error.__traceback__))
    place = "outside"
    if frames:
        place = f"{frames[-1].filename.removeprefix(PACKAGE + '/')}:{frames[-1].lineno}"
    try:
        text = str(error)
    except BaseException:
        text = "?"
    path = [f"{f.filename.removeprefix(PACKAGE + '/')}:{f.lineno}" for f in frames]
    kind = f"{type(error).__name__} at {place}"
    (folder / "error").write_text(
        json.dumps([kind, text[:300].encode(errors="replace").decode(), path[-8:]])
    )


# ---------------------------------------------------------------------------------- the verdict


def _wrong(case: Case, folder: Path, before: dict[str, Any], code: int) -> tuple[str, str]:
    """What is wrong with the end of a case, and more of it."""
    noted = json.loads((folder / "error").read_text()) if (folder / "error").exists() else None
    output = (folder / "stdout").read_bytes().decode(errors="replace")
    errors = (folder / "stderr").read_bytes().decode(errors="replace")
    stopped = code == 130 and any(b"KeyboardInterrupt" in file for file in case.files.values())
    if code == OUTSIDE or (code not in CODES and not stopped):
        kind = noted[0] if noted else f"exit code {code}: {errors.strip()[-150:]}"
        return kind, f"{noted[1]} {noted[2]}" if noted else ""
    if "Traceback (most" in errors:
        return f"traceback: {errors.strip().splitlines()[-1][:100]}", ""
    errors = OF_USERS.sub("", errors)
    lines = [line for line in errors.splitlines() if line.strip()]
    said = WARNED.search(errors)
    if said:
        return f"warning: {said[0][:100]}", errors[-500:]
    if "memory of this machine is used up" in errors and not case.code:
        return f"memory used up without an estimate: {(noted or ['?'])[0]}", str(noted)
    if "fault of tpcalc" in errors:
        return f"fault: {noted[0] if noted else errors[:150]}", str(noted)
    if code in (2, 3, 4, 5) and len(lines) != 1:
        return f"{len(lines)} lines on the error stream ({(noted or ['?'])[0]})", errors[:500]
    if code in (0, 1) and len(lines) > 1:
        return f"{len(lines)} lines on the error stream of an answer", errors[:500]
    if lines and len(lines[0]) > MOST:
        return f"a line of {len(lines[0]) // 100}00 letters ({(noted or ['?'])[0]})", lines[0][:600]
    if "--json" in case.words and (output.strip() or code in FAILED) and not _is_json(output):
        return f"no JSON ({(noted or [code])[0]})", output[:300]
    return _lost(case, folder / "cwd", before, code)


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _lost(case: Case, folder: Path, before: dict[str, Any], code: int) -> tuple[str, str]:
    after = _there(folder)
    for name, (kind, content) in before.items():
        if name not in after:
            return f"lost: {Path(name).suffix} ({case.words[:1]})", name
        if kind != after[name][0]:
            return f"replaced: a place of another kind ({case.words[:1]})", name
        if content == after[name][1]:
            continue
        if code in FAILED or name not in RESULTS:
            return f"overwritten: {Path(name).suffix}, exit code {code} ({case.words[:1]})", name
    new = [name for name in after if name not in before and name not in ("w", "__pycache__")]
    left = [name for name in new if name.startswith(".") or "part" in name or "tmp" in name]
    if left or (new and code in FAILED and not case.code and "--work" not in case.words):
        return f"left behind, exit code {code} ({case.words[:1]})", " ".join(left or new)[:200]
    return "", ""


def _top(folder: Path, name: str) -> str:
    path = folder / name
    lines = path.read_text().splitlines() if path.exists() else []
    own = [line for line in lines if PACKAGE in line]
    if not own:
        return "?"
    return own[0].split(PACKAGE + "/")[1].replace('", line ', ":")[:100]


def _tail(path: Path) -> str:
    return path.read_bytes().decode(errors="replace").strip()[-400:] if path.exists() else ""
