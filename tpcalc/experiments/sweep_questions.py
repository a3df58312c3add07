"""The questions that a sweep can ask of a study, and the rows of their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tpcalc.experiments.rates import OO
from tpcalc.experiments.transfer import transfer
from tpcalc.meanfield.answer import nonlinearity
from tpcalc.progress import Progress
from tpcalc.questions.check import check
from tpcalc.questions.compare import compare
from tpcalc.questions.studies import check_seeds, depths_of, kernel_of, limit_of, networks_of
from tpcalc.results.data import flat
from tpcalc.study import Study, build, network_of
from tpcalc.study.build import data_of
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
