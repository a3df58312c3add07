"""What comes in from outside and goes out: numbers, files, arrays, places, sizes."""

from __future__ import annotations

import io
import os
import resource
import signal
import stat
import time
import zipfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tpcalc as tp
from tpcalc import checks
from tpcalc.doors import arrays, budget, files, machine, write
from tpcalc.doors.budget import Pace, limits_of, paced, spend, within
from tpcalc.doors.machine import Limits
from tpcalc.doors.numbers import exact
from tpcalc.errors import OutOfMemory, StudyError, TooLong, UsageError
from tpcalc.experiments.depth import depth_experiment
from tpcalc.experiments.plans import depth_plan_of
from tpcalc.recursions.finite import finite
from tpcalc.recursions.trunk import Trunk

HOSTILE = ("1e400", "1e999999999", "1e-999999999", "9" * 5000, "1/" + "9" * 700, "nan", "inf",
           "-inf", "१२", "1_000", "0x10", "", " ", "1/0", "1e", "--1", "1e5/3")  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_no_number_is_refused_at_once(text: str) -> None:
    began = time.process_time()
    with pytest.raises(StudyError, match=r"a must be|a is") as caught:
        exact(text, what="a")
    assert len(str(caught.value)) <= 200
    with pytest.raises(UsageError, match=r"a must be|a is"):
        checks.real(text, "a")
    with pytest.raises(UsageError, match="a is"):
        checks.whole(text, "a")
    assert time.process_time() - began < 0.5


@given(st.fractions(max_denominator=10**30))
def test_fractions_are_read_back(number: Fraction) -> None:
    assert exact(str(number), what="a") == checks.real(str(number), "a") == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_read_back(number: float) -> None:
    assert float(exact(repr(number), what="a")) == number == float(exact(number, what="a"))


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path, fifo: Path) -> None:
    (tmp_path / "zero").symlink_to("/dev/zero")
    for place in (fifo, tmp_path / "zero", tmp_path, tmp_path / "none", Path("a\0b")):
        for reader in (files.text, files.content, arrays.array, arrays.arrays, arrays.table):
            with pytest.raises(StudyError, match=r"no such file|a device or a pipe|a folder"):
                reader(place, "table")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "line 1: byte 0xff is not UTF-8 text"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b"a = " + b"9" * 5000, "more than 4300 digits"),
        (b"a" + b".a" * 20000 + b" = 1", "more than 40 parts"),
        (b"a = ", "not TOML"),
        (b"x" * (files.MOST + 1), "at most 67,108,864 are read"),
    ],
    ids=range(6),
)
def test_texts_that_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(StudyError, match=message):
        files.from_toml(files.text(path), str(path))


def test_json_that_is_refused() -> None:
    for text in ("[" * 100_000, "9" * 5000, "{", "", '{"a": nope}'):
        with pytest.raises(StudyError, match="not a JSON file"):
            files.from_json(text, "a.json")


def npy(array: object) -> bytes:
    made = io.BytesIO()
    np.save(made, np.asarray(array), allow_pickle=True)
    return made.getvalue()


def announcing(shape: tuple[int, ...]) -> bytes:
    """A file of no numbers whose header says otherwise."""
    made = io.BytesIO()
    form = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(made, form)
    return made.getvalue()


ARRAYS = {
    "empty": b"",
    "text": b"not an array",
    "cut": npy(np.ones(100))[:200],
    "objects": npy([{}, None]),
    "larger than its file": announcing((50_000, 50_000)),
    "larger than anything": announcing((2**40, 2**40)),
    "negative": announcing((-1, 4)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_refused(tmp_path: Path, name: str) -> None:
    single, several = tmp_path / "a.npy", tmp_path / "a.npz"
    single.write_bytes(ARRAYS[name])
    with zipfile.ZipFile(several, "w") as archive:
        archive.writestr("a.npy", ARRAYS[name])
    for reader, path in ((arrays.array, single), (arrays.arrays, several)):
        with pytest.raises((StudyError, OutOfMemory)) as caught:
            reader(path, "table")
        assert "allow_pickle" not in str(caught.value)


def test_an_archive_that_unpacks_to_more_than_there_may_be_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.zeros(2**20))
    assert arrays.arrays(path, "table")["a"].sum() == 0
    with within(Limits(memory=2**20)), pytest.raises(OutOfMemory, match="reading the table"):
        arrays.arrays(path, "table")


def test_tables_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    (tmp_path / "a.txt").write_text("1 2\n3 4\n")
    np.save(tmp_path / "a.npy", [[1.0, 2], [3, 4]])
    for name, reader in (("csv", arrays.table), ("txt", arrays.table), ("npy", arrays.array)):
        assert reader(tmp_path / f"a.{name}", "table").tolist() == [[1, 2], [3, 4]]


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file may have more than 1,000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("small_files")
def test_what_was_there_stays_where_a_new_file_cannot_be_written(tmp_path: Path) -> None:
    place = tmp_path / "a.txt"
    place.write_text("old")
    with pytest.raises(StudyError, match=r"the page cannot be written: File too large.*room"):
        write.put(place, "x" * 100_000, "page")
    with pytest.raises(ZeroDivisionError), write.writing(place) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert place.read_text() == "old" and list(tmp_path.iterdir()) == [place]


def test_files_keep_their_links_and_their_modes(tmp_path: Path) -> None:
    place, link = tmp_path / "a.txt", tmp_path / "link.txt"
    place.write_text("old")
    place.chmod(0o640)
    link.symlink_to(place)
    write.put(link, "new")
    assert link.is_symlink() and place.read_text() == "new"
    assert stat.S_IMODE(place.stat().st_mode) == 0o640


def test_places_that_are_none(tmp_path: Path, fifo: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    long = tmp_path / ("a" * 300)
    for place in (fifo, tmp_path / "full", tmp_path, tmp_path / "no" / "a", Path("a\0b"), long):
        for tried in (write.check, lambda place: write.put(place, "new")):
            with pytest.raises(StudyError, match="cannot be written"):
                tried(place)
    assert fifo.is_fifo() and Path("/dev/full").is_char_device()


def test_what_takes_too_much_is_refused_before_it_starts() -> None:
    with within(limits_of("60", "1MiB")):
        spend("a step", seconds=50, memory=2**19)
        with pytest.raises(TooLong, match=r"a run would take about 2 minutes; 1 minute is allowed"):
            spend("a run", seconds=120)
        with pytest.raises(OutOfMemory, match=r"a run needs about 2\.00 MiB; 1\.00 MiB"):
            spend("a run", memory=2**21)
    for bad in ("x", "0", "-1GiB", "1e400GiB", "1XiB"):
        with pytest.raises((UsageError, StudyError)):
            limits_of(None, bad)


def test_what_turns_out_to_take_too_long_is_refused_while_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, told = [0.0], list[float]()
    monkeypatch.setattr(budget, "perf_counter", lambda: now[0])
    pace = Pace("some work", 1000)
    with within(limits_of(100, None), lambda what, seconds: told.append(seconds)):
        now[0] = 3  # a tenth is done
        pace.reached(100)
        assert told == [30]
        now[0] = 33
        with pytest.raises(TooLong, match="some work would take about 2"):
            pace.reached(200)
    assert list(paced(range(5), "numbers")) == [0, 1, 2, 3, 4]


def test_the_limits_of_a_run_are_those_of_use() -> None:
    mlp, data = tp.MLP(2, "relu"), tp.Samples([[1.0]], [1.0])
    with tp.use(most_seconds=1):
        tp.train(mlp, "mup", data, steps=3)
        with pytest.raises(TooLong, match="a run of 500 steps"):
            tp.train(mlp, "mup", data, steps=500)
    with tp.use(memory="100KiB"), pytest.raises(OutOfMemory, match="available"):
        tp.train(mlp, "mup", data, steps=10)
    assert len(tp.train(mlp, "mup", data, steps=10).nodes) > 100


MANY = {
    "kind": "depth",
    "name": "many",
    "title": "Many networks",
    "training": {"steps": 1, "inputs": [[1.0]], "targets": [[1.0]]},
    "depths": {"blocks": [2], "widths": [8], "seeds": 10**12},
    "profile": {"places": [0.5], "steps": [1]},
}
COUNTS = {
    "steps": lambda: tp.Training(tp.MLP(2, "relu"), "mup", None, steps=10**9),
    "batch": lambda: tp.Training(tp.MLP(2, "relu"), "mup", None, batch=10**12),
    "depth": lambda: tp.MLP(10**9, "relu"),
    "blocks": lambda: tp.ResNet(10**9, "relu"),
    "layers": lambda: tp.ResNet(2, "relu", nonlin="between", layers=10**9),
    "length": lambda: tp.RNN(10**9, "relu"),
    "blocks of a recursion": lambda: finite(Trunk([1.0], [1.0]), 10**9),
    "networks of an experiment": lambda: depth_experiment(depth_plan_of(MANY)),
    "more than is counted": lambda: tp.MLP(10**30, "relu"),
    "more than is printed": lambda: tp.MLP(10**5000, "relu"),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_without_a_bound_are_refused(name: str) -> None:
    with pytest.raises((OutOfMemory, TooLong, UsageError)):
        COUNTS[name]()


GROUPS = {
    "version 2, an outer group": (
        "0::/user/job\n",
        {"user/memory.max": "1000", "user/memory.current": "300", "user/job/memory.max": "max"},
        700,
    ),
    "version 1": (
        "5:cpu,memory:/job\n1:name=systemd:/x\n",
        {"memory/job/memory.limit_in_bytes": "500", "memory/job/memory.usage_in_bytes": "100"},
        400,
    ),
    "none": ("0::/\n", {}, None),
}


@pytest.mark.parametrize("name", GROUPS)
def test_the_process_has_what_its_own_control_group_has(tmp_path: Path, name: str) -> None:
    own, entries, left = GROUPS[name]
    (tmp_path / "own").write_text(own)
    for path, text in entries.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert machine._container_free(tmp_path, tmp_path / "own") == left


def test_what_was_there_stays_where_the_writer_is_killed(tmp_path: Path) -> None:
    place = tmp_path / "a.txt"
    place.write_text("old")
    child = os.fork()
    if not child:
        with write.writing(place) as file:
            file.write(b"new" * 100_000)
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert place.read_text() == "old"


def test_a_folder_without_the_right_to_write_is_refused_before_the_run() -> None:
    with pytest.raises(StudyError, match=r"the page cannot be written: .*[Cc]hoose"):
        write.check(Path("/proc/page.html"), "page")
