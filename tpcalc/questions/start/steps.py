"""First steps of optimizers: how large they are, from how large the gradient is.

Of the text of an optimizer the first step is a function psi of n^shift g, entry by entry, times a
power of n: of degree 1 for gradient descent, bounded for Adam, between for what adds an eps that
has a power of n. A constant eps is no power of the width: it is left out, and a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import log2

import numpy as np

from tpcalc.exponents import as_ex
from tpcalc.functions import Expr, Fn
from tpcalc.functions.tape import evaluate
from tpcalc.program.family import Mark
from tpcalc.training.optimizer import Optimizer
from tpcalc.training.training import Training

EPS = "eps"


def step_size(
    run: Training, mark: Mark, step: int, gradient: Fraction, values: Mapping[str, Fraction]
) -> Fraction:
    """The exponent of the entries of a step, from that of the entries of the gradient.

    What an optimizer remembers of earlier steps is left out.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> half = Fraction(1, 2)
        >>> for optimizer in ("sgd", "adam", {"adam": "n^(-1)"}):
        ...     eps = optimizer["adam"] if isinstance(optimizer, dict) else 0
        ...     name = f"adam(eps={eps})" if eps else optimizer
        ...     run = Training(MLP(1, "relu"), "standard", optimizer=name)
        ...     print(step_size(run, run.network.marks[0], 0, -2 * half, {}))
        -1
        0
        0
    """
    rate, power = run.rate(mark, step)
    optimizer = run.optimizer_of(mark)
    if constant_eps(optimizer):
        optimizer = optimizer.with_settings(eps=0)
    if optimizer.is_plain:
        return gradient - power.at(values)
    path = run.path_of(mark, optimizer)([(rate, power)])
    at = gradient + path.shift.at(values)
    return max(shift.at(values) + at * degree(psi, at) for shift, psi in path.moves)


def constant_eps(optimizer: Optimizer) -> bool:
    """Whether an optimizer adds an eps that has no power of the width."""
    number, power = optimizer.settings.get(EPS, (0, as_ex(0)))
    return number != 0 and power == as_ex(0)


@lru_cache(maxsize=256)
def degree(psi: Expr, at: Fraction) -> Fraction:
    """The degree of an update in a gradient that vanishes with the width, or grows."""
    near = 2.0 ** (-40 if at < 0 else 40)
    ends = np.abs(evaluate(Fn(psi, 1), [np.array([near, near**0.5])]))
    first, last = np.broadcast_to(ends, (2,))
    return Fraction(round(2 * log2(first / last) / log2(near) * 2), 2) if at else Fraction(0)
