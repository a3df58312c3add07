"""Tasks in this process and in others: values, faults, what is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import MissingBackend, OutOfMemory, StudyError, TaskFailed, UsageError
from tpcalc.tasks.alone import beside, inside
from tpcalc.tasks.kept import Kept
from tpcalc.tasks.run import error_of, outcomes, results
from tpcalc.tasks.task import Task

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not import tests
TASKS = [Task(f"task {k}", (k,), str(k)) for k in range(6)]


def square(shared: Any, number: int, progress: Any) -> Any:
    return shared * number**2


def product(shared: Any, number: int, progress: Any) -> Any:
    matrix = np.random.default_rng(number).standard_normal((400, 400))
    return (matrix @ matrix).tobytes()


def place(shared: Any, number: int, progress: Any) -> Any:
    return os.getpid(), inside(), beside()


def notes(shared: Any, number: int, progress: Any) -> Any:
    with Path(shared).open("a") as file:
        file.write("x")
    progress(0.5, "half")


def asks(shared: Any, number: int, progress: Any) -> Any:
    return results(notes, TASKS[:2], shared=shared, progress=progress)


def refuses(shared: Any, number: int, progress: Any) -> Any:
    time.sleep(0.02 * (6 - number))  # a later one is first to refuse
    if number > 1:
        raise UsageError(f"{number} is refused.", where="here", hint="Take 0.")
    return number


def breaks(shared: Any, number: int, progress: Any) -> Any:
    with Path(shared, str(number)).open("a") as file:
        file.write("x")
    if number == 2:
        raise ZeroDivisionError("two")
    return number


def once(shared: Any, number: int, progress: Any) -> Any:
    """The first time it fails: by an error, for want of memory, or its process is killed."""
    mark = Path(shared, str(number))
    if mark.exists():
        return number
    mark.touch()
    if number == 1:
        raise OSError("not yet")
    if number == 2:
        raise MemoryError
    if number == 3 and inside() and beside() > 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def kills(shared: Any, number: int, progress: Any) -> Any:
    if number == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def tells(shared: Any, number: int, progress: Any) -> Any:
    time.sleep(0.31)
    progress(0.5, "half")
    time.sleep(0.3 * (shared > 1))
    return number


def sleeps(shared: Any, number: int, progress: Any) -> Any:
    Path(shared, str(os.getpid())).touch()
    time.sleep(60)


@pytest.mark.parametrize("jobs", [1, 2])
def test_values_are_in_the_order_of_tasks(jobs: int) -> None:
    with tp.use(jobs=jobs):
        assert results(square, TASKS, shared=2) == [0, 2, 8, 18, 32, 50]


def test_products_have_the_same_bits_in_other_processes() -> None:
    here = results(product, TASKS)
    with tp.use(jobs=2):
        assert results(product, TASKS) == here


def test_what_a_task_asks_for_is_done_in_its_process() -> None:
    with tp.use(jobs=2):
        found = results(place, TASKS)
    assert os.getpid() not in {pid for pid, _, _ in found}
    assert {(own, count) for _, own, count in found} == {(True, 2)}
    assert results(place, TASKS[:1]) == [(os.getpid(), True, 1)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_first_refusal_is_told_as_it_is(jobs: int) -> None:
    with tp.use(jobs=jobs), pytest.raises(UsageError) as caught:
        results(refuses, TASKS)
    assert (caught.value.message, caught.value.where, caught.value.hint) == (
        "2 is refused.",
        "here",
        "Take 0.",
    )


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_task_that_fails_is_tried_twice_and_named(jobs: int, tmp_path: Path) -> None:
    with tp.use(jobs=jobs):
        found = dict(outcomes(breaks, TASKS, shared=str(tmp_path)))
    assert [number for number, reply in found.items() if reply.failed] == [2]
    assert (tmp_path / "2").read_text() == "xx"
    assert (tmp_path / "1").read_text() == "x"
    error = error_of(TASKS[2], found[2])
    assert isinstance(error, TaskFailed)
    assert "task 2 failed 2 times" in str(error)
    assert "ZeroDivisionError: two" in str(error)
    assert [found[k].value for k in (0, 1, 3, 4, 5)] == [0, 1, 3, 4, 5]


def test_what_passes_is_no_failure(tmp_path: Path) -> None:
    with tp.use(jobs=2):
        assert results(once, TASKS, shared=str(tmp_path)) == [0, 1, 2, 3, 4, 5]


def test_what_kills_its_process_is_named_and_the_others_have_their_values() -> None:
    with tp.use(jobs=2):
        found = dict(outcomes(kills, TASKS))
    assert [k for k in range(6) if found[k].failed] == [4]
    assert "task 4 failed" in str(error_of(TASKS[4], found[4]))
    assert [found[k].value for k in (0, 1, 2, 3, 5)] == [0, 1, 2, 3, 5]


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_rises_and_names_tasks(jobs: int) -> None:
    told: list[tuple[float, str]] = []
    with tp.use(jobs=jobs):
        results(tells, TASKS[:3], shared=jobs, progress=lambda *words: told.append(words))
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert any(text.endswith(": half") for _, text in told)


@pytest.mark.parametrize("call", [notes, asks])
def test_an_error_of_who_is_told_is_no_failure_of_a_task(call: Any, tmp_path: Path) -> None:
    def progress(fraction: float, text: str) -> None:
        raise ZeroDivisionError(text)

    with pytest.raises(ZeroDivisionError, match="half"):
        results(call, TASKS, shared=str(tmp_path / "calls"), progress=progress)
    assert (tmp_path / "calls").read_text() == "x"


def test_an_interruption_leaves_no_process_busy(tmp_path: Path) -> None:
    import _thread

    def interrupt() -> None:
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.05)
        _thread.interrupt_main()

    # A shell may start what runs in its background with interrupts that are ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with tp.use(jobs=2), pytest.raises(KeyboardInterrupt):
            threading.Thread(target=interrupt).start()
            results(sleeps, TASKS, shared=str(tmp_path))
    finally:
        signal.signal(signal.SIGINT, before)
    for busy in tmp_path.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(busy.name), 0)


def test_what_cannot_be_sent_is_named() -> None:
    lock = threading.Lock()

    def holds(h: Any) -> Any:
        return h * lock.locked()

    with tp.use(jobs=2), pytest.raises(UsageError, match=r"holds.*test_tasks\.py") as caught:
        results(square, TASKS, shared=holds)
    assert "lock" in str(caught.value)
    with tp.use(jobs=2), pytest.raises(UsageError, match="what task 0 needs"):
        results(square, [Task("task 0", (lock,)), *TASKS])


def test_no_more_processes_begin_than_have_work(monkeypatch: pytest.MonkeyPatch) -> None:
    from tpcalc.tasks.processes import Processes

    begun: list[int] = []
    made = Processes.__init__

    def counted(own: Processes, jobs: int, *more: Any) -> None:
        begun.append(jobs)
        made(own, 2, *more)

    monkeypatch.setattr(Processes, "__init__", counted)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    for jobs in (2, 4, 1000):
        with tp.use(jobs=jobs):
            assert results(square, TASKS, shared=2)[:3] == [0, 2, 8]
    assert begun == [2, 4, len(TASKS)]


def test_other_versions_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from tpcalc.tasks.worker import Job, carry_out, versions

    other = tuple((name, "0.0.1" if name == "tpcalc" else own) for name, own in versions())
    with pytest.raises(MissingBackend, match=r"worker 7 has tpcalc .*\(0\.0\.1 here\)"):
        carry_out(Job("", other, 1), b"", b"", print, "worker 7")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"jobs": 0}, "at least 1"),
        ({"jobs": "two"}, "whole number"),
        ({"jobs": 10**6}, "at most 1024"),
        ({"jobs": 2, "scheduler": "tcp://a:1"}, "one of the two"),
        ({"scheduler": "a:1"}, "tcp://host:8786"),
        ({"scheduler": "ftp://a:1"}, "tcp://host:8786"),
        ({"scheduler": "nowhere.json"}, "no file that one wrote"),
        ({"scheduler": "words.json"}, "no file that one wrote"),
        ({"scheduler": "list.json"}, "no file that one wrote"),
        ({"scheduler": "other.json"}, "no file that one wrote"),
    ],
)
def test_places_that_are_none(
    asked: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("words", "tcp://a:1"), ("list", "[]"), ("other", '{"address": 5}')):
        Path(f"{name}.json").write_text(text)
    with pytest.raises(UsageError, match=words):
        tp.use(**asked)


def test_errors_travel_whole() -> None:
    import pickle

    from tpcalc.errors import UnknownName

    for error in (UnknownName("colour", "ret", ["red"]), OutOfMemory("full.", hint="Wait.")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.hint) == (type(error), str(error), error.hint)


# ------------------------------------------------------------------------------------ what is kept


def test_kept_values_are_not_computed_again(tmp_path: Path) -> None:
    with Kept(tmp_path, "squares", "of 2") as kept:
        results(square, TASKS[:3], shared=2, kept=kept)
    with Kept(tmp_path, "squares", "of 2") as kept:
        assert results(square, TASKS, shared=100, kept=kept) == [0, 2, 8, 900, 1600, 2500]


def test_a_line_that_was_cut_is_computed_again(tmp_path: Path) -> None:
    with Kept(tmp_path, "squares", "of 2") as kept:
        results(square, TASKS, shared=2, kept=kept)
    file = tmp_path / "squares.jsonl"
    file.write_bytes(file.read_bytes()[:-4])
    (tmp_path / ".squares-0.npz.1a2b").touch()  # what it was writing beside its place
    with Kept(tmp_path, "squares", "of 2") as kept:
        assert [task.key in kept for task in TASKS] == [True] * 5 + [False]
        results(square, TASKS, shared=2, kept=kept)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".squares.lock", "squares.jsonl"]
    assert [json.loads(line) for line in file.read_text().splitlines()][-1]["value"] == 50


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ('{"file": "tpcalc tasks 1", "of": "of 2"}\n', "something else"),
        ("no json\n", "damaged in line 1"),
        ('{"file": "tpcalc tasks 2", "of": "of 2", "digest": ""}\n', "changed in line 1"),
    ],
)
def test_files_of_something_else_stay_as_they_are(tmp_path: Path, written: str, words: str) -> None:
    file = tmp_path / "squares.jsonl"
    file.write_text(written)
    with pytest.raises(StudyError, match=words):
        Kept(tmp_path, "squares", "of 2")
    assert file.read_text() == written


@pytest.mark.parametrize(
    "line", ["[]", "3", '{"key": "3", "value": 9}', '{"digest": "a"}', "[" * 9999]
)
def test_lines_that_were_changed_are_refused(tmp_path: Path, line: str) -> None:
    with Kept(tmp_path, "squares", {"base": "2"}) as kept:
        kept["3"] = 18
    with pytest.raises(StudyError, match="something else: other base, sign"):
        Kept(tmp_path, "squares", {"base": "3", "sign": "+"})
    file = tmp_path / "squares.jsonl"
    file.write_text(f"{file.read_text().splitlines()[0]}\n{line}\n")
    with pytest.raises(StudyError, match=r"(damaged|changed) in line 2"):
        Kept(tmp_path, "squares", {"base": "2"})


def test_two_runs_do_not_write_into_one_folder(tmp_path: Path) -> None:
    with Kept(tmp_path, "squares", "of 2"):
        code = (
            "from tpcalc.tasks.kept import Kept\n"
            f"try: Kept({str(tmp_path)!r}, 'squares', 'of 2')\n"
            "except Exception as error: print(error)\n"
        )
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "another run writes into this folder" in said.stdout
    Kept(tmp_path, "squares", "of 2").close()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StudyError, match="cannot be made"):
        Kept(tmp_path / "file" / "folder", "squares", "of 2")
    with pytest.raises(StudyError, match="cannot be made"):
        Kept("a\0", "squares", "of 2")
