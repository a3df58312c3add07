"""What a block of a residual network adds, as limits and networks of a width read it."""

from __future__ import annotations

from typing import Protocol

from tpcalc.functions import Expr


class Branch(Protocol):
    """A block adds a L^(-alpha) V phi(W x), V or W possibly missing."""

    @property
    def activation(self) -> Expr:
        """phi, an expression of ``Var(0)``."""

    @property
    def alpha(self) -> object:
        """The power of 1/L."""

    @property
    def multiplier(self) -> float:
        """a, with all other numbers in front."""

    @property
    def outer(self) -> str | None:
        """The law of V along the depth; None: there is no V."""

    @property
    def inner(self) -> str | None:
        """The law of W along the depth; None: there is no W."""

    @property
    def centred(self) -> bool:
        """Whether the average over coordinates is taken off what is added."""

    @property
    def laws(self) -> tuple[str, str]:
        """The laws of the entries of V and of W."""
