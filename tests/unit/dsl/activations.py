"""Activations and programs of the tests: the layer above, with the real ones, is not needed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tpcalc.dsl import Tracer, Vector, elementwise, program
from tpcalc.functions import Atom, Facts
from tpcalc.program.program import Program

STEP = Atom("step", lambda xp, z: xp.where(z > 0, 1.0, 0.0), None, Facts(growth=Fraction(0)))
RELU = Atom("relu", lambda xp, z: xp.maximum(z, 0.0), STEP, Facts(homogeneity=Fraction(1)))
TANH = Atom("tanh", lambda xp, z: xp.tanh(z), lambda z: 1 - TANH(z) ** 2, Facts(parity="odd"))
EXP = Atom("exp", lambda xp, z: xp.exp(z), lambda z: EXP(z))

step, relu, tanh, exp = (elementwise(atom) for atom in (STEP, RELU, TANH, EXP))


def traced(function: Callable[[Tracer], Any]) -> Program:
    """The program whose one output is what the function returns."""

    @program
    def whole(t: Tracer) -> None:
        t.output("out", function(t))

    return whole.build()


def nodes(function: Callable[[Tracer, Vector, Vector], Any]) -> list[Any]:
    """The nodes after two start vectors x (%0) and y (%1)."""

    def with_two(t: Tracer) -> Any:
        x, y = t.gaussians(["x", "y"])
        # both stay, so that the numbers of the nodes are known
        t.output("x", x)
        t.output("y", y)
        return function(t, x, y)

    return list(traced(with_two).nodes[2:])
