"""Records -> the one JSON object that ``--json`` prints."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from tpcalc.names import Name
from tpcalc.results import (
    Comparison,
    DepthExperiment,
    DepthOrders,
    DepthTable,
    DepthVerdict,
    Experiment,
    Explosion,
    FiniteRow,
    FiniteTable,
    Kernel,
    LimitTable,
    NotCovered,
    OrderRow,
    OrderTable,
    PhaseDiagram,
    Provenance,
    Run,
    ScalarRow,
    Sheets,
    SlopeRow,
    Solution,
    Theorems,
    VectorRow,
    Verdict,
)
from tpcalc.results.codec import to_json
from tpcalc.results.data import as_plain, of_estimate
from tpcalc.results.kernel import KINDS


def document(
    command: str,
    model: Mapping[str, Any],
    result: Mapping[str, Any],
    made: Mapping[str, Any] | None = None,
) -> str:
    """The JSON text of an answer.

    JSON has no infinity and no NaN: such numbers become null.

    Example:
        >>> print(document("show", {"file": "a.py"}, {"text": "", "z": float("inf")}))
        {
          "tpcalc": "...",
          "command": "show",
          "model": {
            "file": "a.py"
          },
          "result": {
            "text": "",
            "z": null
          },
          "provenance": {}
        }
    """
    import tpcalc

    whole = {
        "tpcalc": tpcalc.__version__,
        "command": command,
        "model": model,
        "result": result,
        "provenance": made or {},
    }
    return json.dumps(as_plain(whole), indent=2, ensure_ascii=False, allow_nan=False)


def limit(table: LimitTable) -> dict[str, Any]:
    """The result of ``limit``."""
    return {
        "scalars": [_scalar(row) for row in table.scalars],
        "vectors": [_vector(row) for row in table.vectors],
        "not_covered": [_uncovered(row) for row in table.uncovered],
        "exploded": _exploded(table.exploded),
        "notes": table.notes,
    }


def finite(table: FiniteTable) -> dict[str, Any]:
    """The result of ``simulate``: averages over the seeds."""
    return {
        **_of(table, "widths seeds backend"),
        "rows": [_finite(row) for row in table.rows],
        "notes": table.notes,
    }


def comparison(table: Comparison) -> dict[str, Any]:
    """The result of ``compare``."""
    rows = [
        {
            **_key(row.name),
            **_of(row, "statistic limit limit_stderr width mean stderr seeds z"),
            **_present(limit_std=row.limit_std, finite_std=row.finite_std),
        }
        for row in table.rows
    ]
    return {
        "rows": rows,
        "slopes": [_slope(row) for row in table.slopes],
        "not_covered": [_uncovered(row) for row in table.uncovered],
        "exploded": _exploded(table.exploded),
        "finite_alone": [_finite(row) for row in table.alone],
        "notes": table.notes,
    }


def orders(table: OrderTable) -> dict[str, Any]:
    """The result of ``orders``."""
    return {
        "rows": [_order(row) for row in table.rows],
        "region": table.region,
        "point": dict(table.point),
        "exploded": _exploded(table.exploded),
        "notes": table.notes,
    }


def depth(found: DepthVerdict | DepthOrders) -> dict[str, Any]:
    """The result of ``check``, ``solve`` or ``orders`` of a network of L blocks."""
    result: dict[str, Any] = kept(as_plain(found))
    return result


def depths(found: DepthTable) -> dict[str, Any]:
    """The result of ``limit`` of a network of L blocks."""
    rows = [
        {
            "name": row.name,
            "depth": row.depth,
            "value": row.estimate.value,
            "error": row.estimate.stderr,
            "method": row.estimate.method.value,
            "route": row.route,
        }
        for row in found.rows
    ]
    lacking = [asdict(gap) for gap in found.lacking]
    drawn = [
        {
            "name": name,
            "depth": sample.depth,
            "width": sample.width,
            "log10": (mean := sample.log10(name, sample.alphas[0])).value,
            "stderr": mean.stderr,
            "networks": mean.samples,
        }
        for sample in found.samples
        for name in sample.names
    ]
    networks = {"networks": drawn} if drawn else {}
    return {"values": rows, "lacking": lacking, "notes": found.notes, **networks}


def check(found: Verdict) -> dict[str, Any]:
    """The result of ``check``."""
    layers = [
        {
            "layer": layer.layer,
            **({"name": layer.name} if layer.name else {}),
            "moves": layer.moves,
            **_present(weights=layer.weights or None, biases=layer.biases or None),
            **_of(layer, "features kernel step reason"),
        }
        for layer in found.layers
    ]
    return {
        **_of(found, "verdict status stationary_start initial facts"),
        "layers": layers,
        "updates": [_order(row) for row in found.updates],
        "outputs": [_order(row) for row in found.outputs],
        **_of(found, "valid_for steps"),
        "exploded": _exploded(found.exploded),
        **_of(found, "region notes"),
    }


def theorems(found: Theorems) -> list[dict[str, Any]]:
    """What theorems say of a network."""
    return [
        {
            **_of(row, "name title"),
            "source": str(row.source),
            **_of(row, "answer differs"),
            "hypotheses": [_of(each, "text met found") for each in row.hypotheses],
            "claims": [
                {"about": claim.text, **_of(claim, "stated derived agrees")} for claim in row.claims
            ],
            "notes": row.notes,
        }
        for row in found.rows
    ]


def solution(found: Solution) -> dict[str, Any]:
    """The result of ``solve``."""
    steps = [
        {"step": one.step, "c": one.c, **_present(bias_c=one.bias_c or None)} for one in found.steps
    ]
    stored = [_of(parameter, "name role b c") for parameter in found.stored]
    return {
        "steps": steps,
        **_present(names=found.names or None, bias_names=found.bias_names or None),
        "region": found.region,
        "point": dict(found.point),
        "closed": dict(found.closed),
        **_present(stored=stored or None),
        "notes": found.notes,
    }


def phases(found: PhaseDiagram) -> dict[str, Any]:
    """The result of ``phases``."""
    cells = [
        {
            **_of(cell, "dimension verdict conditions"),
            "vertices": [tuple(map(str, corner)) for corner in cell.vertices],
            "sample": dict(cell.sample),
            "fact": cell.fact,
        }
        for cell in found.cells
    ]
    return {
        "symbols": found.symbols,
        "box": {name: (str(low), str(high)) for name, low, high in found.box},
        "cells": cells,
        **_of(found, "complete runs notes"),
    }


def kernel(found: Kernel) -> dict[str, Any]:
    """The result of ``kernel``; a kernel that was not asked for is null."""
    matrices = {kind: getattr(found, kind) for kind in KINDS}
    return {
        **{kind: None if part is None else part.tolist() for kind, part in matrices.items()},
        "method": found.method.value,
        **_of(found, "error coincident_error independent symmetric shape labels notes"),
    }


def blocks(found: DepthExperiment) -> dict[str, Any]:
    """The result of ``experiment`` of networks of many blocks, and of ``transfer``."""
    result: dict[str, Any] = kept(as_plain(found))
    for own, one in zip(result["references"], found.references, strict=True):
        own["found"] = kept(as_plain(found.beside(one)))
    return result


def sheets(found: Sheets) -> dict[str, Any]:
    """The result of ``sheet``."""
    return {"sheets": [to_json(each) for each in found.sheets]}


def experiment(found: Experiment) -> dict[str, Any]:
    """The result of ``experiment``: every trial, and what stands beside them."""
    reported = ("table", "network", "data", "accuracy")
    return {
        **_of(found, "name title source shows"),
        "runs": [_run(run) for run in found.runs],
        "by_width": [
            {"setting": asdict(run.setting), "rates": run.rates} for run in found.by_width
        ],
        "slopes": {text: [_slope(row) for row in rows] for text, rows in found.slopes},
        "predicted": dict(found.predicted),
        "theorems": dict(found.theorems),
        "growth": dict(found.growth),
        **_of(found, "vanishing ranked"),
        "reported": [dict(zip(reported, row, strict=True)) for row in found.reported],
        "shares": dict(found.shares),
        "notes": found.notes,
    }


def kept(found: Any) -> Any:
    """A record with all that it holds but provenance, which the answer has beside its result."""
    if isinstance(found, list):
        return [kept(part) for part in found]
    if isinstance(found, dict):
        return {key: kept(value) for key, value in found.items() if key != "provenance"}
    return found


_RESULTS: dict[type, Callable[[Any], Any]] = {
    LimitTable: limit,
    FiniteTable: finite,
    Comparison: comparison,
    OrderTable: orders,
    DepthVerdict: depth,
    DepthOrders: depth,
    DepthTable: depths,
    Verdict: check,
    Solution: solution,
    PhaseDiagram: phases,
    Kernel: kernel,
    Sheets: sheets,
    DepthExperiment: blocks,
    Experiment: experiment,
}


def result(found: Any) -> dict[str, Any]:
    """The result that an answer of any kind is printed as."""
    made: dict[str, Any] = _RESULTS.get(type(found), lambda other: kept(as_plain(other)))(found)
    return made


def provenance(record: Provenance) -> dict[str, Any]:
    """What an answer was computed from and with."""
    return {
        "version": record.version,
        "program": record.program_digest,
        "seed": record.seed,
        "settings": dict(record.settings),
        "libraries": dict(record.libraries),
        "seconds": round(record.seconds, 3),
    }


def _scalar(row: ScalarRow) -> dict[str, Any]:
    return {**_key(row.name), **of_estimate(row.estimate), **_common(row)}


def _vector(row: VectorRow) -> dict[str, Any]:
    return {
        **_key(row.name),
        "mean": row.mean.value,
        "mean_stderr": row.mean.stderr,
        "second_moment": row.second_moment.value,
        "stderr": row.second_moment.stderr,
        "method": row.second_moment.method.value,
        "status": row.second_moment.status.name.lower(),
        **_common(row),
    }


def _uncovered(row: NotCovered) -> dict[str, Any]:
    return {
        **_key(row.name),
        "status": "not covered",
        **_of(row, "code node term reason hint"),
        **({"bound": row.bound} if row.bound else {}),
    }


def _common(row: ScalarRow | VectorRow) -> dict[str, Any]:
    shown: dict[str, Any] = {"n_power": str(row.n_power)}
    if row.formula is not None:
        shown["formula"] = row.formula.text
    return shown


def _finite(row: FiniteRow) -> dict[str, Any]:
    count = len(row.values)
    spread = statistics.stdev(row.values) if count > 1 else math.nan
    return {
        **_key(row.name),
        "statistic": row.statistic,
        "width": row.width,
        "mean": statistics.mean(row.values),  # a sum of them may be too large
        "stderr": spread / math.sqrt(count),
        "std": spread,
        "seeds": count,
    }


def _run(run: Run) -> dict[str, Any]:
    shown = asdict(run)
    return {"network": run.setting.text, **shown, "seconds": round(run.seconds, 3)}


def _slope(row: SlopeRow) -> dict[str, Any]:
    return {
        **_key(row.name),
        **_of(row, "statistic slope low high"),
        **_present(note=row.note or None),
    }


def _exploded(found: Explosion | None) -> dict[str, Any] | None:
    return None if found is None else {"step": found.step, "fact": found.fact}


def _order(row: OrderRow) -> dict[str, Any]:
    shown = {
        **_key(row.name),
        "n": str(row.n),
        **_of(row, "status reason"),
    }
    if row.slope is not None or row.note:
        shown |= _of(row, "slope low high")
        shown |= _present(agrees=row.agrees, note=row.note or None)
    return shown


def _key(name: str) -> dict[str, Any]:
    own = Name.tabled(name)
    return {
        "name": own.word,
        **_present(layer=own.number, step=own.step, input=own.input, output=own.output),
    }


def _of(record: Any, names: str) -> dict[str, Any]:
    """Some fields of a record, by name."""
    return {name: getattr(record, name) for name in names.split()}


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
