"""What a run is at one width: powers of n as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from tpcalc.errors import ScaleError, StudyError
from tpcalc.exponents import Ex, as_ex
from tpcalc.program.family import Mark
from tpcalc.training.parameterization import Exponents
from tpcalc.training.training import Training


@dataclass(frozen=True)
class Scales:
    """The steps of a run at one width, in terms of the weights W = n^(-a) w that networks hold.

    An optimizer acts on u W, the weights in the units of the run: for w <- w - eta n^(-c) grad_w,
    which has no units, on W itself, with the rate eta n^(-(2a + c)).

    Source: Hajjar, Chizat, Giraud, equation (2.2) with Remark 2.1.

    Example:
        >>> from tpcalc.training.setting import run_of
        >>> from tpcalc.results import Setting
        >>> run = run_of(Setting("relu", "ip-llr", 2, 16))
        >>> [Scales(run, 16).rate(mark, 0) for mark in run.network.marks if not mark.bias]
        [64.0, 1.0, 0.25]
    """

    training: Training  # the run
    width: int  # the width n

    def __post_init__(self) -> None:
        run, marks = self.training, self.training.network.marks
        for step in range(run.steps):
            _check(run, step)
        self.kept(0)  # before anything is drawn
        for mark in marks:
            self.numbers(mark)
            for step in dict.fromkeys(self.first):
                self.rate(mark, step)

    def start(self, mark: Mark) -> tuple[float, float]:
        """The scale n^(-a) of an initial parameter, replaced or not, and the mean of its w."""
        run, depth = self.training, self.training.network.hidden
        table, layer = run.tables[0], mark.layer - 1
        scale = _power(run.parameterization.power(mark, table), self.width, self._where)
        if mark.bias:
            return scale, 0.0
        scale *= _kept(table, depth, self.width, self._where)[layer]
        return scale, float(table.mean[layer]) if table.mean else 0.0

    def kept(self, step: int) -> tuple[float, ...]:
        """What the initial weights of the layers 1..L+1 are multiplied by just before an update.

        It is 1, but where a parameterization replaces them.
        """
        depth, where = self.training.network.hidden, self._where
        if step:
            return (1.0,) * (depth + 1)
        before, after = (
            _kept(found, depth, self.width, where) for found in self.training.tables[:2]
        )
        return tuple(new / old if old else 1.0 for old, new in zip(before, after, strict=True))

    @cached_property
    def first(self) -> tuple[int, ...]:
        """For each step the first one since which the exponents have been the same."""
        found, tables = [0], self.training.tables
        for step in range(1, self.training.steps):
            found.append(found[-1] if tables[step] == tables[step - 1] else step)
        return tuple(found)

    def rate(self, mark: Mark, step: int) -> float:
        """The learning rate of what an optimizer acts on, the schedule and the base rate aside."""
        run, own = self.training, self.training.own(mark)
        _, exponent = run.rate(mark, step)
        exponent += (1 + own.optimizer.degree) * self._unit(mark)
        number = float(own.lr * mark.rate * run.in_depth(mark, own.optimizer.degree))
        return number * _power(exponent, self.width, self._where)

    def unit(self, mark: Mark) -> float:
        """The u of u W, which an optimizer acts on."""
        held = self.training.parameterization.power(mark, self.training.tables[0])
        return _power(self._unit(mark) - held, self.width, self._where)

    def numbers(self, mark: Mark) -> dict[str, float]:
        """The numbers of the optimizer of a parameter."""
        settings = self.training.optimizer_of(mark).settings
        return {
            name: float(number) * _power(-power, self.width, self._where)
            for name, (number, power) in settings.items()
        }

    @property
    def _where(self) -> str:
        return self.training.parameterization.text

    def _unit(self, mark: Mark) -> Ex:
        """The s of n^(-s) w = u W; where there are no units, that of W."""
        run, table = self.training, self.training.tables[0]
        if self.training.optimizer_of(mark).has_units:
            return run.parameterization.stored(mark, table)
        return run.parameterization.power(mark, table)


def _check(training: Training, step: int) -> None:
    """Whether networks can be trained from one step to the next."""
    now, then = training.tables[step : step + 2]
    where = training.parameterization.text
    if (now.a, now.bias_a) != (then.a, then.bias_a):
        raise StudyError(
            f"the scales of its weights change after step {step}.",
            where=where,
            hint="Trained networks need the same a_l at every step; rates c_l may change.",
        )
    whole = (as_ex(0),) * len(now.a)
    before, after = now.kept or whole, then.kept or whole
    revived = any(new is not None and old is None for old, new in zip(before, after, strict=True))
    if revived or (step and before != after):
        raise StudyError(
            f"its initial weights are replaced after step {step}.",
            where=where,
            hint="Trained networks can replace them after step 0 alone.",
        )


def _kept(exponents: Exponents, depth: int, width: int, where: str) -> tuple[float, ...]:
    """What is left of the initial weights: n^(-power), or nothing."""
    if not exponents.kept:
        return (1.0,) * (depth + 1)
    return tuple(0.0 if power is None else _power(power, width, where) for power in exponents.kept)


def _power(exponent: Ex, width: int, where: str) -> float:
    """The number n^(-exponent)."""
    value = exponent.constant
    if value is None:
        raise ScaleError(
            f"the exponent {exponent} holds symbols; a trained network needs numbers.",
            where=where,
            hint="Give its parameters as numbers.",
        )
    # The whole part is exact where n is a power of 2, and the rest is at most one rounding more.
    whole = math.floor(value)
    try:
        found = float(float(width) ** -whole / float(width) ** float(value - Fraction(whole)))
    except OverflowError:
        found = math.inf
    if not 0 < found < math.inf:
        raise ScaleError(
            f"n^({-exponent}) at n = {width} is outside the range of floating point.",
            where=where,
            hint="Take a smaller width or depth.",
        )
    return found
