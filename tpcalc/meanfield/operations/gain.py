"""Random factors, one for each coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpcalc.functions import Expr
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.meanfield.operations.operation import Number
from tpcalc.meanfield.state import State, logarithm


@dataclass(frozen=True, slots=True)
class Gain:
    """Multiplication by a function of a start vector, the same for all inputs: a mask.

    Args:
        tau: The function.
        variance: Of the start vector.

    Source: The rules of Schoenherr, The nonlinearity coefficient, table 5.3, for a function of two
        independent vectors.

    Example:
        >>> from tpcalc.functions import Var
        >>> from tpcalc.meanfield.operations import Input
        >>> Gain(Var(0), 4).state([Input(1.0, 0.25).state(())]).gap.value
        3.0
    """

    tau: Expr
    variance: Number

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "gain"

    @property
    def mean(self) -> Bounded:
        """The mean of the factors."""
        return Kernels(self.tau).mean(bounded(self.variance))

    @property
    def square(self) -> Bounded:
        """Their second moment."""
        return Kernels(self.tau).second(bounded(self.variance))

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer."""
        (own,) = parents
        s = self.square
        return State(
            self.mean * own.mean, s * own.square, s * own.gap, own.log_gradient + logarithm(s)
        )
