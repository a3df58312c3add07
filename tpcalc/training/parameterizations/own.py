"""The powers of n that a network writes itself, in the gauge of its user."""

from __future__ import annotations

from tpcalc.errors import StudyError
from tpcalc.exponents import Ex, as_ex
from tpcalc.program.family import Mark
from tpcalc.sources import INTEGRABLE
from tpcalc.training.parameterization import Exponents, ParameterizationFamily, layers, shared


def exponents(depth: int, step: int) -> Exponents:
    """No powers of layers: those of parameters stand in their place."""
    none = layers(depth, 0, 0, 0)
    return shared(none, none)


def own(kind: str, mark: Mark, step: int, degree: int) -> Ex:
    """The exponents of a parameter W of entries n^(-b) that moves by its gradient g, or by sign(g).

    With W = n^(-b) w a step of W by g is one of w by n^(2 b) times the gradient by w; one by what
    does not grow with the gradient (degree 0) is one of w by n^b times the same.

    Source: Hajjar, Chizat, Giraud, Remark 2.1, with a = 0.
    """
    if mark.init is None and not mark.bias and not mark.at_zero:
        raise StudyError(
            f"the parameterization 'own' takes the powers that a network writes, and {mark.label} "
            "has no init.",
            hint="Write t.linear(t.n, t.n, init='n^(-1/2)'), or take another parameterization.",
        )
    start = as_ex(0) if mark.init is None else mark.init
    return (1 + degree) * start if kind == "c" else -start  # W itself is trained


ENTRY = ParameterizationFamily(
    "own",
    make=lambda: exponents,
    text="the powers that a network writes: entries of init, steps by the gradient times rate",
    source=INTEGRABLE.at("Remark 2.1"),
    entrywise=lambda: exponents,
    own=own,
)
