"""Activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tpcalc.catalog.activations import lookup
from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import derivative
from tpcalc.signal.kernels import Kernels
from tpcalc.signal.operations.operation import required
from tpcalc.signal.state import State, logarithm

__all__ = ["Activation"]


@dataclass(frozen=True)
class Activation:
    """A function of every coordinate.

    Args:
        tau: The function, an expression of ``Var(0)``.
        label: Its name.

    Raises:
        StudyError: A constant.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3.

    Example:
        >>> from tpcalc.catalog.activations import lookup
        >>> from tpcalc.signal.operations import Input
        >>> found = Activation(lookup("relu").fn.expr).state([Input().state(())])
        >>> found.square.value, round(found.gap.value, 6)
        (0.5, 0.340845)
    """

    tau: Expr
    label: str = ""
    _kernels: Kernels = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        required(
            derivative(self.tau, Var(0)).text != "0",
            "Activation",
            f"the activation {self.name} is a constant, or has the slope 0 almost everywhere "
            "(condition 22.2).",
            "Take one that inputs pass through.",
        )
        object.__setattr__(self, "_kernels", Kernels(self.tau))

    @classmethod
    def named(cls, text: str) -> Activation:
        """An activation of the catalogue.

        Args:
            text: Its name, with parameters after a colon: ``"tanh"``, ``"leaky_relu:0.2"``.

        Raises:
            UnknownName: There is none of that name.

        Example:
            >>> Activation.named("relu^2").name
            'relu_pow[2]'
        """
        found = lookup(text)
        return cls(found.fn.expr, found.text)

    @property
    def name(self) -> str:
        """For messages and tables."""
        return self.label or self.tau.text

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layer that it reads.
        """
        (own,) = parents
        q, kernels = own.square, self._kernels
        return State(
            kernels.mean(q),
            kernels.second(q),
            kernels.gap(q, own.gap),
            own.log_gradient + logarithm(kernels.slope(q)),
        )
