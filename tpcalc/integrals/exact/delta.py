"""The Dirac delta: what the derivative of a step is inside an expectation."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.errors import EvaluationError
from tpcalc.functions import Atom, Facts, in_sympy


def no_density() -> EvaluationError:
    """What is raised where a delta is asked of a number."""
    return EvaluationError(
        "the mean of a Dirac delta of a Gaussian without variance is infinite or 0.",
        hint="The derivative of a jump has no expectation where its argument is a number.",
    )


def _evaluate(xp: Any, z: Any) -> Any:
    raise EvaluationError(
        "the Dirac delta has no values: it is the derivative of a jump.",
        hint="It has a meaning inside an expectation over a Gaussian alone.",
    )


DELTA = Atom(
    "delta",
    evaluate=_evaluate,
    derivative=None,
    facts=Facts(parity="even", homogeneity=Fraction(-1), kinks=(0.0,), growth=None),
    sympy=in_sympy(lambda sp, z: sp.DiracDelta(z)),
)
