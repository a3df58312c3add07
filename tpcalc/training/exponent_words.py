"""The exponents of a parameterization as words, for reports."""

from __future__ import annotations

from collections.abc import Sequence

from tpcalc.exponents import Ex
from tpcalc.training.parameterization import Exponents, Parameterization


def exponent_words(
    parameterization: Parameterization, depth: int, steps: int, biases: bool = False
) -> dict[str, str]:
    """The tables of a parameterization as pairs of words.

    Example:
        >>> from tpcalc.training.parameterizations import lookup
        >>> exponent_words(lookup("hpz"), 2, 1)["Re-initialisation from t = 1"]
        'w[2](0) is dropped'
    """
    if parameterization.own is not None:
        return {"Powers of n": "those that the network writes for each parameter"}
    rows = [parameterization.exponents(depth, step) for step in range(max(steps, 1))]
    first = rows[0]
    made = {
        "Powers of the weights": _row("a", first.a),
        "Powers of the learning rates": _rates("c", [row.c for row in rows]),
    }
    if biases and any((row.bias_a, row.bias_c) != (row.a, row.c) for row in rows):
        made["Powers of the biases"] = _row("a", first.bias_a)
        made["Powers of the learning rates of biases"] = _rates("c", [row.bias_c for row in rows])
    if any(first.mean):
        made["Means of the initial weights"] = _row("u", first.mean)
    return made | _kept([parameterization.exponents(depth, step) for step in range(steps + 1)])


def _row(name: str, values: Sequence[object]) -> str:
    return f"{name} = ({', '.join(map(str, values))})"


def _rates(name: str, rows: Sequence[tuple[Ex, ...]]) -> str:
    if all(row == rows[0] for row in rows):
        return _row(name, rows[0])
    parts = [f"{_row(name, rows[0])} at t = 0"]
    for step in range(1, len(rows)):
        if rows[step] != rows[step - 1]:
            parts.append(f"{_row(name, rows[step])} from t = {step}")
    return "; ".join(parts)


def _kept(rows: Sequence[Exponents]) -> dict[str, str]:
    """What becomes of the initial weights, at each step at which that changes."""
    made: dict[str, str] = {}
    before: tuple[Ex | None, ...] = (Ex(),) * len(rows[0].a)
    for step, row in enumerate(rows):
        kept = row.kept or (Ex(),) * len(row.a)
        if kept != before:
            made[f"Re-initialisation from t = {step}"] = ", ".join(
                f"w[{layer}](0) " + _fate(power)
                for layer, power in enumerate(kept, start=1)
                if power != Ex()
            )
        before = kept
    return made


def _fate(power: Ex | None) -> str:
    return "is dropped" if power is None else f"is multiplied by n^(-({power}))"
