"""Answers about the depth: what becomes of training as the number of blocks grows.

The field ``L`` of a row is a growth exponent e: size ~ L^e, after the width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tpcalc.errors import EvaluationError, UnknownName
from tpcalc.names import Name
from tpcalc.results.depth_sample import DepthSample
from tpcalc.results.estimate import Estimate, Method
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown

if TYPE_CHECKING:
    from numpy.typing import NDArray


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DepthValue:
    """A number of a run at a number of blocks, or in the limit.

    Args:
        name: ``f[t,b]`` an output at step t of sample b (``f[t,b,k]`` of several outputs);
            ``x[t,b]`` and ``dx[t,b]`` the mean square of the stream after the last block and of its
            adjoint before the first; at the start of a network ``R^2``, ``D^2``, ``Rp^2``,
            ``Dp^2``: mean squares of the stream and of its adjoint, and of how far they moved.
        depth: The number of blocks, ``"oo"`` the limit.
        estimate: The number.
        route: How it was found, in words.

    Example:
        >>> from tpcalc.results import Estimate, Method
        >>> DepthValue("f[1,0]", "oo", Estimate(2.5, 1e-12, Method.QUADRATURE), "").depth
        'oo'
    """

    name: str
    depth: str
    estimate: Estimate
    route: str


@dataclass(frozen=True, slots=True, eq=False)
class DepthArray:
    """Numbers of a run along the depth, at a number of blocks or in the limit.

    Indices i and j are samples of all steps, t B + b. Of T updates there are forward passes
    0 ... T and adjoints of 0 ... T - 1; what is in those after the last update is NaN.

    Args:
        name: ``"features"``: <x_i | x_j> of the stream; ``"gradients"``: <dx_i | dx_j> of its
            adjoint, the derivative of the loss included; ``"preactivations"``: <h_i | h_j> of the
            block that leads to p; ``"distances"``: the inner products of x(q) - x(p);
            ``"inputs"``, ``"outputs"``: what of U and of n V is in x (ket 0) and in dx (ket 1);
            ``"coefficients"``: what is in them of the Gaussians of the block that leads to q, times
            sqrt(L): of its product with x (base 0) and of its transpose's with dx (base 1); at the
            start of a network ``R^2``, ``D^2``, ``Rp^2``, ``Dp^2``.
        depth: The number of blocks, ``"oo"`` the limit.
        axes: What the axes of the arrays are: ``"ket"``, ``"base"``, ``"p"``, ``"q"``, ``"i"``,
            ``"j"``, ``"feature"``.
        places: p: shares of the depth, of L blocks those of layers.
        values: The numbers.
        errors: Of the same shape: bounds on the error, standard errors where ``method`` is
            particles.
        method: How they were found.
        route: The same in words.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, Lemma 4.3: ``features`` are C with a = 0,
        ``gradients`` those with a = 1, ``coefficients`` Gamma with ket a and base b; ``inputs`` and
        ``outputs`` those Gamma whose second index is -1.

    Example:
        >>> import numpy as np
        >>> ones = np.ones((2, 1, 1))
        >>> place = ("p", "i", "j")
        >>> made = DepthArray("features", "oo", place, (0.0, 1.0), ones, 0 * ones, Method.EXACT, "")
        >>> made.values.shape
        (2, 1, 1)
    """

    name: str
    depth: str
    axes: tuple[str, ...]
    places: tuple[float, ...]
    values: NDArray[Any]
    errors: NDArray[Any]
    method: Method
    route: str


@dataclass(frozen=True, slots=True)
class DepthGap:
    """What is asked at a depth and has no number.

    Args:
        depth: The number of blocks, or ``"oo"``.
        reason: Why, and what to do.
        name: Of the number or of the array; ``""``: of all that is asked at this depth.

    Example:
        >>> str(DepthGap("oo", "there is no limit."))
        'L = oo: no numbers: there is no limit.'
    """

    depth: str
    reason: str
    name: str = ""

    def __str__(self) -> str:
        what = f", {self.name}: no number" if self.name else ": no numbers"
        return f"L = {self.depth}{what}: {self.reason}"


@dataclass(frozen=True, slots=True)
class DepthTable(Shown):
    """Numbers of a run at several depths.

    Args:
        rows: The numbers, depth by depth.
        lacking: What is asked and has no number, each with the reason.
        provenance: What they were computed from and with.
        notes: What a reader should know besides.
        arrays: What was asked for along the depth, depth by depth.
        samples: The start of networks of finite width, where they are put beside it.
    """

    rows: tuple[DepthValue, ...]
    lacking: tuple[DepthGap, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()
    arrays: tuple[DepthArray, ...] = ()
    samples: tuple[DepthSample, ...] = ()

    @property
    def start(self) -> bool:
        """Whether the numbers are those of the start, where norms are compared."""
        return "R^2" in self.names

    @property
    def depths(self) -> tuple[str, ...]:
        """The depths with numbers."""
        return tuple(dict.fromkeys(row.depth for row in self.rows))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers."""
        return tuple(dict.fromkeys(row.name for row in self.rows))

    @property
    def batch(self) -> int:
        """Samples of a step."""
        samples = [own.input or 0 for own in map(Name.of, self.names) if own.what == "f"]
        return 1 + max(samples, default=0)

    def at(self, name: str, depth: int | str) -> Estimate:
        """A number.

        Args:
            name: Its name.
            depth: The number of blocks, or ``"oo"``.

        Raises:
            EvaluationError: It was asked and has no number.
            UnknownName: It was not asked.
        """
        known = {row.name: row.estimate for row in self.rows if row.depth == str(depth)}
        return self._of(known, "number", name, str(depth))

    def along(self, name: str, depth: int | str) -> DepthArray:
        """Numbers along the depth.

        Args:
            name: Their name, as of ``DepthArray``.
            depth: The number of blocks, or ``"oo"``.

        Raises:
            EvaluationError: They were asked and have no numbers.
            UnknownName: They were not asked.
        """
        known = {one.name: one for one in self.arrays if one.depth == str(depth)}
        return self._of(known, "array", name, str(depth))

    def _of(self, known: dict[str, T], kind: str, name: str, depth: str) -> T:
        if name in known:
            return known[name]
        for gap in self.lacking:
            if gap.depth == depth and gap.name in ("", name):
                raise EvaluationError(gap.reason, where=f"{name} at L = {depth}")
        raise UnknownName(f"{kind} at depth {depth}", name, known)
