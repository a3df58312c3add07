"""Activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import derivative
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.given import Act, whole
from tpcalc.meanfield.operations.operation import required
from tpcalc.meanfield.state import State, logarithm


@dataclass(frozen=True)
class Activation:
    """A function of every coordinate.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        label: Its name.

    Raises:
        StudyError: A constant.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> from tpcalc.meanfield.operations import Input
        >>> found = Activation(lookup("relu").fn.expr).state([Input().state(())])
        >>> found.square.value, round(found.gap.value, 6)
        (0.5, 0.340845)
    """

    tau: Act
    label: str = ""
    _kernels: Kernels = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = whole(self.tau)
        if not (self.label or found.text == found.expr.text):
            object.__setattr__(self, "label", found.text)
        object.__setattr__(self, "tau", found.expr)
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
        return cls(text)

    @property
    def expr(self) -> Expr:
        """The function, of ``Var(0)``."""
        found: Expr = self.tau
        return found

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
