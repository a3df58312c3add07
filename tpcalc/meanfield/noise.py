"""Where noise of lengths outgrows them: of widths, of number formats."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import NamedTuple

from tpcalc.errors import EvaluationError
from tpcalc.integrals.bounded import bounded
from tpcalc.meanfield.graph import LayerGraph
from tpcalc.meanfield.measured import Sampling
from tpcalc.meanfield.recursion import STATE
from tpcalc.meanfield.stability import Stability
from tpcalc.meanfield.state import State
from tpcalc.results.nonlinearity import NoiseReach

USUAL = 1000  # width, where none was asked
LINEAR = 1e-3  # of a length: up to here deviations are followed by their factors


class Format(NamedTuple):
    """A number format: its rounding in round numbers, the largest number, bits behind the point."""

    text: str
    rounding: float
    largest: float
    bits: int

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next number."""
        return 2.0**-self.bits


FORMATS = {
    "float16": Format("rounding of 16-bit floats", 1e-3, 65504.0, 10),
    "bfloat16": Format("rounding of bfloat16", 1e-2, 3.3895314e38, 7),
    "float32": Format("rounding of 32-bit floats", 1e-7, 3.4028235e38, 23),
    "float64": Format("rounding of 64-bit floats", 1e-16, 1.7976931e308, 52),
}
USUAL_FORMATS = FORMATS["float32"], FORMATS["float64"]


def reaches(
    graph: LayerGraph, states: tuple[State, ...], steady: Stability, sampling: Sampling | None
) -> tuple[NoiseReach, ...]:
    """Where noise of lengths has grown to their size: that of widths, and of number formats.

    Source: Schoenherr, The nonlinearity coefficient, section 5.6.
    """
    widths = sampling.widths if sampling else (USUAL,)
    one = FORMATS["float32"]
    noises = [one._replace(text=f"networks of width {n}", rounding=n**-0.5) for n in widths]
    known = (*noises, *USUAL_FORMATS)
    ends = (overflow(graph, states, steady, each) for each in known)
    return tuple(
        NoiseReach(each.text, each.rounding, steady.reach(each.rounding), end)
        for each, end in zip(known, ends, strict=True)
    )


def overflow(
    graph: LayerGraph, states: tuple[State, ...], steady: Stability, known: Format
) -> int | None:
    """The first layer too long for a number format where inputs are longer by a rounding.

    Where second moments leave the range of 64-bit floats, that counts as too long.

    Source: Schoenherr, The nonlinearity coefficient, section 5.6.
    """
    moves = [known.rounding * factor.value for factor in steady.factors]
    first = next((k for k, move in enumerate(moves) if abs(move) >= LINEAR), None)
    if first is None:
        return None
    up = 1 if moves[first] > 0 else -1
    found: list[State] = []
    for index, layer in enumerate(graph.layers):
        try:
            if index <= first:
                longer = bounded((1 + up * moves[index]) ** 2)
                found.append(replace(states[index], square=states[index].square * longer))
            else:
                found.append(STATE(layer.operation, *(found[p] for p in layer.parents)))
        except (EvaluationError, OverflowError):
            return index
        if not sqrt(found[-1].square.value) <= known.largest:
            return index
    return None
