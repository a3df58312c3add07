"""A residual network of the paper with what its theorems ask: constants and assumptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import sqrt

from tpcalc.errors import UsageError
from tpcalc.functions.form import slopes_of
from tpcalc.networks.network import Architecture
from tpcalc.program.along import along_of
from tpcalc.questions.depth.shape import Unlike, block_at_start, start_of
from tpcalc.recursions.start import Start
from tpcalc.results import Hypothesis
from tpcalc.theorems.resnets.entries import Entries, entries_of

LEAST = 1 / sqrt(2)
HALF = 0.5


@dataclass(frozen=True)
class Case:
    """A network x + L^(-beta) V sigma(x), or V sigma(W x), with the laws of its entries."""

    network: Architecture  # the network
    start: Start  # its block
    outer: Entries  # the law of the entries of sqrt(d) V
    inner: Entries  # that of W; the same where there is no W

    @property
    def beta(self) -> Fraction:
        """The power of 1/L in front of a block."""
        return self.start.alpha

    @property
    def name(self) -> str:
        """res-1, res-2 or res-3."""
        if self.start.inner is None:
            return "res-1"
        return "res-3" if self.slopes == (1.0, 0.0) else "res-2"

    @cached_property
    def slopes(self) -> tuple[float, float] | None:
        """The slopes of the activation above and below 0; None: it has others."""
        found = slopes_of(self.start.activation)
        scale = self.start.multiplier
        return None if found is None else (scale * found[0], scale * found[1])

    @property
    def spread(self) -> tuple[float, float] | None:
        """Numbers a, b with a |x| <= |sigma(x)| <= b |x|."""
        if self.slopes is None:
            return None
        sizes = sorted(map(abs, self.slopes))
        return sizes[0], sizes[1]

    @property
    def fresh(self) -> bool:
        """Whether all matrices are independent of each other."""
        return all(along_of(law).fresh for law in self.along)

    @property
    def along(self) -> list[str]:
        """The laws of its matrices along the depth."""
        return [law for law in (self.start.outer, self.start.inner) if law is not None]

    @cached_property
    def c(self) -> tuple[float, float] | None:
        """The least and the largest E |g(h, w)|^2 / |h|^2 over all h; None: not known."""
        if self.slopes is None or self.spread is None:
            return None
        up, down = (slope**2 for slope in self.slopes)
        if self.start.inner is None:
            return self.spread[0] ** 2, self.spread[1] ** 2
        if self.inner.symmetric:
            return (up + down) / 2, (up + down) / 2
        return (min(up, down), max(up, down)) if up != down else (up, up)

    def constant(self, width: int | None = None) -> float:
        """The C of E |g|^8 <= C |h|^8: of Proposition 1, or its form that knows the width."""
        s = self.inner.proxy or 1.0
        if self.start.inner is None:
            return 1.0
        if width is None:
            return 1 + 384 * s**4 + 3072 * s**6
        return 1 + 384 * s**4 / width + 3072 * s**6 / width**2

    @property
    def s(self) -> float:
        """The proxy of the entries of V, at least 1."""
        return max(self.outer.proxy or 1.0, 1.0)


def case_of(network: Architecture, outer: Entries | None = None) -> Case:
    """The network as the theorems take it."""
    try:
        start = start_of(block_at_start(network))
    except Unlike as reason:
        start = None
        why = str(reason)
    if start is None or start.outer is None or start.centred:
        raise UsageError(
            f"the theorems are about blocks V sigma(x) and V sigma(W x); of {network.words}: "
            f"{why if start is None else 'its block has no V'}.",
            hint="ResNet('L', nonlin='pre'), or nonlin='between' with layers=2.",
        )
    laws = [outer or entries_of(law) for law in start.laws]
    return Case(network, start, laws[0], laws[1])


def isometry(network: Architecture, entries: Entries | None = None) -> tuple[float, float]:
    """The least and the largest c = E |g(h, w)|^2 / |h|^2 over all h: the number of all limits.

    Args:
        network: res-1, res-2 or res-3.
        entries: Another law of the entries of its matrices than its own.

    Returns:
        The least and the largest c, rounded to 15 digits.

    Raises:
        UsageError: Another network, or an activation that is not linear on both sides of 0.

    Source: Marion, Fermanian, Biau, Vert, Proposition 1 and Lemmas 16 and 17; one number where W
        has symmetric entries.

    Example:
        >>> import tpcalc as tp
        >>> isometry(tp.ResNet("L", "leaky_relu:0.8", nonlin="between", layers=2))
        (0.82, 0.82)
    """
    found = case_of(network, entries).c
    if found is None:
        raise UsageError("c is known of activations that are linear on both sides of 0.")
    return round(found[0], 15), round(found[1], 15)


def assumptions(
    network: Architecture,
    width: int | None,
    entries: Entries | None = None,
    *,
    outputs: int = 1,
    loss: str = "mse",
) -> dict[str, Hypothesis]:
    """The assumptions A1 to A6, each with what was found.

    Args:
        network: res-1, res-2 or res-3.
        width: d, which the constant C may know; None: any.
        entries: Another law of the entries of its matrices than its own.
        outputs: The number of outputs.
        loss: The loss, ``"mse"`` or ``"logistic"``: of one output its gradient is +-B^T.

    Returns:
        Each assumption by its name, ``"A1"`` to ``"A6"``.

    Raises:
        UsageError: Another network.

    Source: Marion, Fermanian, Biau, Vert, Assumptions A1 to A6.

    Example:
        >>> import tpcalc as tp
        >>> net = tp.ResNet("L", "relu", nonlin="between", layers=2, law="laplace")
        >>> print(assumptions(net, 40)["A1"].found)
        laplace entries are not sub-Gaussian
    """
    case = case_of(network, entries)
    return dict(_assumptions(case, width, outputs, loss))


def _assumptions(
    case: Case, width: int | None, outputs: int, loss: str
) -> Iterator[tuple[str, Hypothesis]]:
    yield "A1", _first(case)
    yield "A2", _second(case, width)
    one = outputs == 1 and loss in ("mse", "logistic")
    text = "the gradient at the last block is isotropic given the stream"
    yield "A3", Hypothesis(text, one, f"{outputs} outputs, loss {loss}")
    yield "A4", _fourth(case)
    rows = [along_of(law).row for law in case.along]
    smooth = all(row.name == "rbf" or row.path is not None for row in rows)
    text = "matrices are Lipschitz paths of l/L"
    yield "A5", Hypothesis(text, smooth, f"{', '.join(dict.fromkeys(case.along))} along the depth")
    lipschitz = case.slopes is not None or case.start.activation is not None
    found = "linear on both sides of 0" if case.slopes else "smooth, with a bounded slope"
    yield "A6", Hypothesis("g is Lipschitz", lipschitz and _bounded(case), found)


def _bounded(case: Case) -> bool:
    """Whether the slope of the activation is bounded, on a wide grid where it is not linear."""
    if case.slopes is not None:
        return True
    import numpy as np

    from tpcalc.functions import Fn
    from tpcalc.functions.tape import evaluate

    points = np.array([-1e4, -1e2, -1.0, 0.5, 1e2, 1e4])
    slope = evaluate(Fn(case.start.activation, 1).by(0), [points], [])
    return bool(np.all(np.abs(slope) < 1e2))


def _first(case: Case) -> Hypothesis:
    law = case.outer
    text = "independent centred entries of variance 1/d, sub-Gaussian"
    if not case.fresh:
        return Hypothesis(text, False, f"matrices are {case.start.outer} along the depth")
    if law.mean != 0 and abs(law.mean) > 1e-12:
        return Hypothesis(text, False, f"{law.name} entries have the mean {law.mean:g}")
    if abs(law.variance - 1) > 1e-9:
        return Hypothesis(text, False, f"{law.name} entries have the variance {law.variance:g}")
    return replace(law.assumed, text=text)


def _second(case: Case, width: int | None) -> Hypothesis:
    text = "1/2 |h|^2 <= E |g|^2 <= |h|^2, E |g|^8 <= C |h|^8"
    if case.c is None:
        return Hypothesis(text, False, "the activation is not linear on both sides of 0")
    low, high = case.c
    if case.name == "res-3" and not case.inner.symmetric:
        share = case.inner.above
        return Hypothesis(
            text,
            False,
            f"{case.inner.name} entries are not symmetric: E relu(X)^2 / E X^2 = {share:.6g}, so "
            "E |g|^2 depends on h",
        )
    met = low >= HALF - 1e-12 and high <= 1 + 1e-12
    between = f"c = {low:g}" if low == high else f"c between {low:g} and {high:g}"
    return Hypothesis(text, met, f"{between}, C = {case.constant(width):g}")


def _fourth(case: Case) -> Hypothesis:
    text = "1/2 |q|^2 <= E |g'(h) q|^2 <= |q|^2"
    found = _second(case, None)
    if not found.met or case.c is None or case.spread is None:
        return Hypothesis(text, False, found.found)
    low, high = case.c
    if case.name == "res-1" and case.spread[0] < LEAST - 1e-12:
        return Hypothesis(text, False, f"slopes between {case.spread[0]:g} and {case.spread[1]:g}")
    between = f"c = {low:g}" if low == high else f"c between {low:g} and {high:g}"
    return Hypothesis(text, True, between)
