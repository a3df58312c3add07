"""Tasks on a Dask cluster: one of this process, and one that its command line started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import tpcalc as tp
from tpcalc.errors import EvaluationError, StudyError
from tpcalc.tasks.run import error_of, outcomes, results
from tpcalc.tasks.task import Task

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not import tests
pytest.importorskip("distributed", reason="needs the dask extra")
TASKS = [Task(f"task {k}", (k,), str(k)) for k in range(6)]
DASK = (sys.executable, "-m", "dask")


def square(shared: Any, number: int, progress: Any) -> Any:
    return shared * number**2


def waits(shared: Any, number: int, progress: Any) -> Any:
    """Leave a mark, then wait for a moment."""
    Path(shared, f"{number}-{os.getpid()}").touch()
    progress(0.5, "half")
    time.sleep(0.7)
    return number


def spins(shared: Any, number: int, progress: Any) -> Any:
    Path(shared, f"{number}-{os.getpid()}").touch()
    while True:
        sum(range(100))


def kills(shared: Any, number: int, progress: Any) -> Any:
    if number == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def cpu(pid: int) -> float:
    import psutil

    return float(psutil.Process(pid).cpu_percent(0.5))


def started(marks: Path, count: int) -> list[int]:
    """The processes of tasks that have begun."""
    for _ in range(300):
        found = [int(mark.name.partition("-")[2]) for mark in marks.iterdir()]
        if len(found) >= count:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{len(found)} tasks have begun, not {count}")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A scheduler and two workers, as a user starts them."""
    folder = tmp_path_factory.mktemp("cluster")
    place = folder / "scheduler.json"
    root = str(Path(tp.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    setting = {**os.environ, "PYTHONPATH": paths}

    def start(*words: str) -> subprocess.Popen[bytes]:
        line = (*DASK, *words, "--scheduler-file", str(place))
        log = (folder / f"{words[0]}.log").open("wb")
        return subprocess.Popen(line, cwd=folder, env=setting, stdout=log, stderr=log)

    running = [start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")]
    one = ("--nworkers", "2", "--nthreads", "1", "--no-dashboard")
    running.append(start("worker", *one, "--local-directory", str(folder)))
    while not place.exists():
        assert running[0].poll() is None, (folder / "scheduler.log").read_text()
        time.sleep(0.05)
    yield str(place)
    for process in reversed(running):
        process.terminate()
    for process in running:
        process.wait()


def test_values_are_those_of_this_process(scheduler: str) -> None:
    large = "x" * 300_000
    with tp.use(scheduler=scheduler):
        assert results(square, TASKS, shared=2) == [0, 2, 8, 18, 32, 50]
        assert results(square, TASKS[:2], shared=large) == ["", large]


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_tasks_alone(scheduler: str, tmp_path: Path) -> None:
    told: list[str] = []
    pids: list[int] = []

    def kill() -> None:
        pids.append(started(tmp_path, 1)[0])
        os.kill(pids[0], signal.SIGKILL)

    with tp.use(scheduler=scheduler):
        threading.Thread(target=kill).start()
        found = results(
            waits, TASKS, shared=str(tmp_path), progress=lambda _, text: told.append(text)
        )
    assert found == [0, 1, 2, 3, 4, 5]
    assert len(set(started(tmp_path, 7))) > 1
    assert any(text.endswith(": half") for text in told)


@pytest.mark.slow
def test_what_kills_workers_is_named(scheduler: str) -> None:
    with tp.use(scheduler=scheduler):
        found = dict(outcomes(kills, TASKS))
    assert [k for k in range(6) if found[k].failed] == [4]
    assert "task 4 failed" in str(error_of(TASKS[4], found[4]))


@pytest.mark.slow
def test_an_interruption_leaves_no_worker_busy(scheduler: str, tmp_path: Path) -> None:
    import _thread

    def interrupt() -> None:
        started(tmp_path, 2)
        _thread.interrupt_main()

    with tp.use(scheduler=scheduler), pytest.raises(KeyboardInterrupt):
        threading.Thread(target=interrupt).start()
        results(spins, TASKS, shared=str(tmp_path))
    time.sleep(2)
    assert max(map(cpu, started(tmp_path, 2))) < 50
    with tp.use(scheduler=scheduler):
        assert results(square, TASKS, shared=2) == [0, 2, 8, 18, 32, 50]


@pytest.mark.slow
def test_a_client_that_dies_leaves_no_worker_busy(scheduler: str, tmp_path: Path) -> None:
    code = f"""
        import sys, cloudpickle
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import test_cluster as tests
        cloudpickle.register_pickle_by_value(tests)
        import tpcalc as tp
        with tp.use(scheduler={scheduler!r}):
            tests.results(tests.spins, tests.TASKS, shared={str(tmp_path)!r})
    """
    client = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])
    pids = started(tmp_path, 2)
    client.kill()
    client.wait()
    for _ in range(40):
        if max(map(cpu, pids)) < 50:
            break
    else:
        raise AssertionError("workers are still busy")


@pytest.mark.slow
def test_a_module_that_workers_lack_is_told(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "absent_module.py").write_text("def act(h):\n    return h\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import absent_module  # type: ignore[import-not-found]

    with (
        tp.use(scheduler=scheduler),
        pytest.raises(StudyError, match=r"worker tcp.*absent_module"),
    ):
        results(square, TASKS, shared=absent_module.act)


@pytest.mark.slow
def test_a_scheduler_that_is_not_there() -> None:
    with pytest.raises(EvaluationError, match=r"no scheduler answers at tcp://127\.0\.0\.1:9"):
        tp.use(scheduler="tcp://127.0.0.1:9")


@pytest.mark.slow
def test_a_cluster_of_this_process_serves_too() -> None:
    from distributed import Client, LocalCluster

    here = dict(n_workers=2, threads_per_worker=2, dashboard_address=None)
    with LocalCluster(**here) as cluster:
        with tp.use(scheduler=cluster):
            assert results(square, TASKS, shared=2) == [0, 2, 8, 18, 32, 50]
        with Client(cluster) as client, tp.use(scheduler=client):
            assert results(square, TASKS, shared=2) == [0, 2, 8, 18, 32, 50]


STUDY = """
model.architecture = "own.py:net"
training.steps = 1
sweep.grid.training.lr = [0.5, 1.0]
sweep.grid.param = ["mup", "ntk", "standard"]
"""
NET = """
import tpcalc as tp

@tp.network
def net(t, x):
    return t.linear(t.outputs, t.n)(tp.tanh(t.linear(t.n, "in")(x)))
"""


@pytest.mark.slow
def test_a_sweep_has_the_same_table_on_a_cluster(scheduler: str, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "own.py").write_text(NET)
    here = tp.sweep(tmp_path / "study.toml", question="limit")
    with tp.use(scheduler=scheduler):  # its workers were started in another folder
        there = tp.sweep(tmp_path / "study.toml", question="limit", work=tmp_path / "kept")
    assert here.to_csv() == there.to_csv() and not here["problem"].any() and len(here) > 100
