"""``records``: records that tasks make, and that are kept, so that a run goes on from them."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tpcalc.errors import TpcalcError
from tpcalc.progress import Progress
from tpcalc.results.codec import from_json, to_json
from tpcalc.tasks.kept import Kept
from tpcalc.tasks.run import results
from tpcalc.tasks.task import Task
from tpcalc.training.training import Training

ONE, SOME, ANY = range(1, 2), range(1, sys.maxsize), range(sys.maxsize)  # records of a task


def digest_of(run: Training, *more: object) -> str:
    """Of all that numbers of a run depend on, and of what else they do."""
    marks, lr, data = run.network.marks, run.lr, run.data
    network = (run.network.smallest.digest, run.network.words, run.parameterization.text)
    rules = sorted({f"{own.label}: {own.rule}" for own in map(run.optimizer_of, marks)})
    rows = None if data is None else (data.inputs, data.targets)  # a text of the data is shortened
    rates = lr if not callable(lr) else [lr(k.layer, t) for k in marks for t in range(run.steps)]
    routine = (rules, rows, run.steps, run.batch, run.loss.name, rates)
    said = (*network, *routine, run.groups, run.factors, run.gammas, *more)
    return hashlib.sha256("\n".join(map(str, said)).encode()).hexdigest()[:16]


def task_of(make: Callable[..., Iterable[Any]], text: str, *own: Any) -> Task:
    """The task of records that depend on nothing but the arguments of what makes them."""
    return Task(text, (make, *own), "|".join(str(one) for one in own))


def records(
    tasks: Sequence[Task],
    kept: Kept,
    *kinds: type,
    shared: Any,
    progress: Progress | None,
    count: range = ONE,
) -> list[list[Any]]:
    """Records of some kinds of tasks, whose first argument is the function that makes them."""
    found = results(_written, tasks, shared=shared, progress=progress, kept=kept)
    read = [_read(task, rows, kept) for task, rows in zip(tasks, found, strict=True)]
    for task, rows in zip(tasks, read, strict=True):
        if len(rows) not in count or not all(isinstance(row, kinds) for row in rows):
            raise kept.refused(f"does not fit {task.text}")
    return read


def _written(shared: Any, make: Callable[..., Iterable[Any]], *rest: Any) -> list[dict[str, Any]]:
    return [to_json(record) for record in make(shared, *rest)]


def _read(task: Task, rows: Any, kept: Kept) -> list[Any]:
    try:
        return [from_json(row) for row in rows]
    except (TpcalcError, TypeError) as error:
        why = getattr(error, "message", error)
        raise kept.refused(f"does not fit {task.text} ({why})") from None
