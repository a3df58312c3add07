"""Scalars of a graph under construction by closed forms or quadrature."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tpcalc.errors import TpcalcError
from tpcalc.evaluate.closure.closure import Closure
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.numeric import Numeric, Work
from tpcalc.limit.context import Context
from tpcalc.limit.derive import graph_of
from tpcalc.limit.graph import LRef, Target

WORK = 5000  # closed forms that a number may take


def evaluated(context: Context, ref: LRef) -> Bounded:
    """A scalar by closed forms or quadrature."""
    graph = graph_of(context, (("", Target(Fraction(0), ref)),))
    ((_, target),) = graph.targets
    assert target.node is not None
    with np.errstate(all="ignore"):
        answer = Closure(graph, Numeric(work=Work(WORK))).scalar(target.node)
    if not np.isfinite(answer.value) or not np.isfinite(answer.error):
        raise Unknown("it leaves the floating-point range")
    return answer


def has_value(context: Context, ref: LRef) -> tuple[bool | None, str]:
    """Whether closed forms or quadrature give a scalar, and what speaks against it."""
    try:
        evaluated(context, ref)
    except Unknown as reason:
        return None, str(reason)
    except TpcalcError as error:
        return None, error.message.rstrip(".")
    return True, ""
