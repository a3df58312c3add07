"""Answers -> the one JSON object that ``--json`` prints: their ``to_dict``, beside the question."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping
from typing import Any

from tpcalc.errors import TpcalcError
from tpcalc.results import FiniteRow, Provenance
from tpcalc.results.data import as_plain


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
    return _text(command, {"model": model, "result": result, "provenance": made or {}})


def refusal(error: TpcalcError, command: str) -> str:
    """The JSON text where there is no answer: what ended the command, uncut."""
    told = {"code": error.code, "message": error.message, "where": error.where, "hint": error.hint}
    return _text(command, {"error": told})


def _text(command: str, parts: Mapping[str, Any]) -> str:
    import tpcalc

    whole = {"tpcalc": tpcalc.__version__, "command": command, **parts}
    return json.dumps(as_plain(whole), indent=2, ensure_ascii=False, allow_nan=False)


def result(found: Any) -> dict[str, Any]:
    """What an answer holds but its provenance, which stands beside the result."""
    plain: dict[str, Any] = _kept(found.to_dict())
    for table in ("rows", "alone"):
        rows = getattr(found, table, ())
        if rows and isinstance(rows[0], FiniteRow):
            pairs = zip(plain[table], rows, strict=True)
            plain[table] = [own | _over_seeds(row) for own, row in pairs]
    return plain


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


def _over_seeds(row: FiniteRow) -> dict[str, Any]:
    spread = statistics.stdev(row.values) if len(row.values) > 1 else math.nan
    return {
        "mean": as_plain(statistics.mean(row.values)),  # a sum of them may be too large
        "stderr": as_plain(spread / math.sqrt(len(row.values))),
        "std": as_plain(spread),
    }


def _kept(found: Any) -> Any:
    if isinstance(found, list):
        return [_kept(part) for part in found]
    if isinstance(found, dict):
        return {key: _kept(value) for key, value in found.items() if key != "provenance"}
    return found
