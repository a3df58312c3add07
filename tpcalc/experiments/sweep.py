"""``sweep``: one question over a grid of settings of a study, cell by cell."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any

from tpcalc import checks
from tpcalc.doors.files import content
from tpcalc.errors import StudyError, UnknownName
from tpcalc.experiments.transfer import OO, transfer
from tpcalc.meanfield.answer import nonlinearity
from tpcalc.progress import Progress
from tpcalc.questions.check import check
from tpcalc.questions.compare import compare
from tpcalc.questions.studies import check_seeds, depths_of, kernel_of, limit_of, networks_of
from tpcalc.results import Sweep
from tpcalc.results.data import as_plain, flat
from tpcalc.results.sweep import PROBLEM, QUANTITY, SHOWN
from tpcalc.results.tables import provenance
from tpcalc.study import Flag, Study, build, network_of, study_of
from tpcalc.study.build import data_of
from tpcalc.study.grid import Cell, sweep_of
from tpcalc.study.load import located, merged_with
from tpcalc.study.models import sections_at
from tpcalc.study.program_file import split_model
from tpcalc.tasks.kept import Kept
from tpcalc.tasks.run import outcomes
from tpcalc.tasks.task import Reply, Task
from tpcalc.views.faces import needed
from tpcalc.views.traces import gather

Row = dict[str, Any]


def _check(study: Study, tell: Progress) -> Iterator[Row]:
    found = check(network_of(study).training, seed=study.limit.seed)
    followed = getattr(found, "valid_for", f"t<={found.steps}")
    known = {"verdict": found.verdict, "status": found.status, "valid_for": followed}
    yield known | {"reason": "".join(found.facts[:1]), "region": ", ".join(found.region)}


def _limit(study: Study, tell: Progress) -> Iterator[Row]:
    network = network_of(study)
    if network.training.network.smallest.repeats:
        depths = depths_of(network, progress=tell)
        yield from map(_row, (*depths.rows, *depths.lacking))
        return
    table = limit_of(build(study), progress=tell)
    notes = {row.name: row.note for row in table.scalars}
    for one in gather(table, None, None):
        if one.limit is not None:
            own = {"name": one.name, "statistic": one.statistic, "value": one.limit.value}
            known = {"error": one.limit.stderr, "method": one.limit.method, "std": one.limit.sd}
            note = "the error target was not met" if one.limit.missed else notes.get(one.name, "")
            yield own | known | {"power": str(one.n_power), "note": note}
    yield from ({"name": row.name, "note": row.reason} for row in table.uncovered)


def _compare(study: Study, tell: Progress) -> Iterator[Row]:
    model = build(study)
    check_seeds(model)
    found = compare(limit_of(model, progress=tell), networks_of(model, tell))
    yield from map(flat, found.rows)
    yield from ({"name": row.name, "note": row.reason} for row in found.uncovered)


def _kernel(study: Study, tell: Progress) -> Iterator[Row]:
    found, _, _ = kernel_of(study, tell)
    known = {"error": max(found.error, found.coincident_error or 0.0), "method": found.method.value}
    for kind in found.kinds:
        matrix = found.matrix(kind)
        own, size = float(matrix.trace()), len(matrix)
        others = (float(matrix.sum()) - own) / max(size * (size - 1), 1)
        yield {"name": kind, "statistic": "diagonal", "value": own / size, **known}
        yield {"name": kind, "statistic": "off_diagonal", "value": others, **known}


def _nlc(study: Study, tell: Progress) -> Iterator[Row]:
    network = network_of(study)
    found = nonlinearity(network.architecture, network.title, seed=study.limit.seed, progress=tell)
    known = {"value": found.nlc.value, "error": found.nlc.stderr, "method": found.nlc.method.value}
    yield {"name": "nlc", **known, "note": found.route}


def _transfer(study: Study, tell: Progress) -> Iterator[Row]:
    run, asked = network_of(study).training, study.simulate
    run = run.replace(data=data_of(study)) if run.data is None else run
    widths = asked.widths if "widths" in asked.model_fields_set else ()
    depths = (OO,) if run.network.smallest.repeats else ()
    found = transfer(run, depths, widths=(*widths, OO), seed=study.limit.seed, progress=tell)
    yield from ({"name": "loss", **_row(row)} for row in found.rows)
    yield from ({"name": "least loss", **_row(row)} for row in found.optima)


def _row(record: Any) -> Row:
    """A row under the names that all questions share."""
    return {_SHARED.get(name, name): value for name, value in flat(record).items()}


_SHARED = {"route": "note", "reason": "note", "how": "note"} | {
    f"{name}{part}": part.strip("_") or "value"
    for name in ("estimate", "loss")
    for part in ("", "_error", "_method")
}
QUESTIONS: dict[str, Callable[[Study, Progress], Iterator[Row]]] = {
    "check": _check,
    "limit": _limit,
    "compare": _compare,
    "kernel": _kernel,
    "nlc": _nlc,
    "transfer": _transfer,
}


Shared = tuple[dict[str, Any], str, dict[str, str]]  # sections, question, digests of files


def sweep(
    study: str | Path | Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]] | None = None,
    question: str | None = None,
    *,
    work: str | Path | None = None,
    progress: Progress | None = None,
) -> Any:
    """One question over a grid of settings: all combinations of the values of some keys.

    Each cell is a task: ``tp.use`` says where they are carried out. A cell that is refused or
    fails has a row with its ``problem``, and the others go on.

    Args:
        study: A study file, or its sections as a mapping.
        grid: By key of a study (``"model.depth"``, or ``"depth"`` where one section alone has it)
            the values that it takes; None: that of the study (``[sweep.grid]``).
        question: ``"check"``, ``"limit"``, ``"compare"``, ``"kernel"``, ``"nlc"`` or
            ``"transfer"``; None: that of the study, else ``"check"``.
        work: A folder that keeps the answers as they come; the same sweep, or one over a larger
            grid, goes on from them.
        progress: Called with the share of the cells that is done, and a cell.

    Returns:
        A ``pandas.DataFrame``: columns of the keys, then what a number or a word is of (``name``,
        ``statistic``, ``width``, ...), it (``value``, ``verdict``, ``z``), what is known of it
        (``error``, ``method``, ``status``, ...), and ``problem``.

    Raises:
        UsageError: A grid without cells or with more than 100,000, an unknown key, a value that
            fits no study.
        StudyError: A study that cannot be read; a folder that holds another sweep.
        MissingBackend: pandas is not installed (``pip install 'tpcalc[dataframe]'``).

    Example:
        >>> grid = {"param": ["mup", "ntk"], "depth": [1, 2]}
        >>> table = sweep({"training": {"steps": 1}}, grid)
        >>> table.pivot(index="model.param", columns="model.depth", values="verdict").loc["ntk", 2]
        'kernel'
    """
    needed("pandas", "dataframe")
    checks.called(progress, "progress", 0.0, "")
    given = {"sweep.grid": grid, "sweep.question": question}
    run = Run(study, [Flag(key, key, value) for key, value in given.items() if value is not None])
    run.go(work, progress)
    return run.sweep.to_dataframe()


class Run:
    """A sweep, checked before it starts, with the answers that are there so far.

    Args:
        study: A study file or another MODEL, or sections.
        flags: What is laid over it.
    """

    def __init__(self, study: str | Path | Mapping[str, Any], flags: Sequence[Flag]) -> None:
        typed = any(flag.key == "sweep.grid" for flag in flags)
        where = None if isinstance(study, Mapping) else str(study)
        own = study if isinstance(study, Mapping) else sections_at(str(study), flags)
        sections = located(merged_with(deepcopy(own), flags), Path.cwd())
        self._folder = Path.cwd() if where is None else Path(where).resolve().parent
        home, where = (Path.cwd(), None) if typed else (self._folder, where)
        self.question, self.cells = sweep_of(sections, home, where)
        if self.question not in QUESTIONS:
            raise UnknownName("question of a sweep", self.question, QUESTIONS, where=where)
        named = _files([sections, *(flag.value for cell in self.cells for flag in cell)])
        self._files = {path: _digest(path) for path in set(named)}
        self._sections = sections
        self.replies: dict[int, Reply] = {}

    def go(self, work: str | Path | None, progress: Progress | None = None) -> None:
        """Ask all cells but those whose answers are kept."""
        tasks = []
        for cell in self.cells:
            words = ", ".join(f"{key} = {value}" for key, value in _shown(cell).items())
            key = self._told({flag.key: flag.value for flag in cell})
            tasks.append(Task(words, (cell,), key))
        shared = self._sections, self.question, self._files
        with Kept(work, "sweep", self.settings) as kept:
            told = outcomes(_answer, tasks, shared=shared, progress=progress, kept=kept)
            self.replies.update(told)

    @property
    def label(self) -> str:
        """A digest of what all answers depend on but the grid."""
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()

    @property
    def settings(self) -> dict[str, str]:
        """What all answers depend on but the grid."""
        version = provenance("", None, {}, 0.0).version
        found = {"question": self.question, "version": version}
        for part, settings in self._sections.items():
            found |= {f"{part}.{key}": self._told(value) for key, value in settings.items()}
        return found

    def _told(self, settings: Any) -> str:
        """Settings as a text, wherever their files lie: with what is in these."""
        files = [self._files[path] for path in _files(settings)]
        text = json.dumps([settings, files], default=str, sort_keys=True)
        return text.replace(str(self._folder), ".")

    @property
    def sweep(self) -> Sweep:
        """The table of what is there."""
        rows, seconds = list[dict[str, Any]](), 0.0
        for number, reply in sorted(self.replies.items()):
            found = reply.value or {"rows": [{}], "seconds": 0.0}
            more = {PROBLEM: str(reply.error or reply.failed or "")}
            rows += [_shown(self.cells[number]) | row | more for row in found["rows"]]
            seconds += found["seconds"]
        axes, there = tuple(_shown(self.cells[0])), dict.fromkeys(chain(*rows))
        known = [*axes, *QUANTITY, *SHOWN, *(name for name in there if name != PROBLEM), PROBLEM]
        columns = sorted(there, key=known.index)
        lines = tuple({name: row.get(name) for name in columns} for row in rows)
        left = len(self.cells) - len(self.replies)
        notes = (f"{left} cells were not reached.",) if left else ()
        made = provenance(self.label, None, {}, seconds)
        return Sweep(self.question, axes, len(self.cells), lines, made, notes)


def _answer(shared: Shared, cell: Cell, tell: Progress) -> dict[str, Any]:
    """The rows of a cell, and how many seconds they took."""
    began, (sections, question, files) = perf_counter(), shared
    for path, known in files.items():
        if _digest(path) != known:
            raise StudyError(
                f"{platform.node()} has no such file, or another one of this name.",
                where=path,
                hint="Copy it to where it lies on the machine that asks.",
            )
    rows = [as_plain(row) for row in QUESTIONS[question](study_of(sections, cell), tell)]
    return {"rows": rows, "seconds": perf_counter() - began}


def _shown(cell: Cell) -> dict[str, str | int | float]:
    """The settings of a cell in a table."""
    return {
        flag.key: flag.value if isinstance(flag.value, str | int | float) else str(flag.value)
        for flag in cell
    }


def _files(settings: Any) -> Iterator[str]:
    """The files that settings name, whose paths are absolute."""
    if isinstance(settings, Mapping | list | tuple):
        for part in settings.values() if isinstance(settings, Mapping) else settings:
            yield from _files(part)
    elif isinstance(settings, str):
        path = (split_model(settings) or (settings,))[0]
        if Path(path).is_absolute():
            yield path


def _digest(path: str) -> str:
    """Of what is in a file; nothing where there is none."""
    return _read(path, Path(path).stat().st_mtime_ns) if Path(path).is_file() else ""


@lru_cache(maxsize=64)
def _read(path: str, changed: int) -> str:
    return hashlib.sha256(content(Path(path))).hexdigest()
