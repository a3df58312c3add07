"""The residual network: an input map, L blocks that add to one stream, and a readout of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeVar

from tpcalc import checks
from tpcalc.doors.numbers import exact
from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.powers import L, Layer, Power
from tpcalc.dsl.vectors import Vector, nonlin
from tpcalc.errors import ProgramError, StudyError
from tpcalc.exponents import Ex
from tpcalc.functions import Expr, Fn
from tpcalc.functions.numbers import root
from tpcalc.networks.architecture import (
    NORMS,
    ArchitectureFamily,
    Catalogued,
    Number,
    activated,
    bias_variance_of,
    chosen,
    read,
    spread,
    variance_of,
)
from tpcalc.networks.depth_powers import one_base
from tpcalc.networks.maps import Linear
from tpcalc.networks.tracer import NetworkTracer
from tpcalc.program.along import FRESH, along_of
from tpcalc.program.laws import LAWS
from tpcalc.registry.values import exponent
from tpcalc.sources import Source

T = TypeVar("T")
HALF = Fraction(1, 2)
SYMBOL = "L"  # the depth that is none in particular


@dataclass(frozen=True)
class ResNet(Catalogued):
    """A residual network: ``depth`` blocks that add to one stream of width n.

    By default (``nonlin="pre"``) the activation of a block comes before its weights: h^1 = W^1 x,
    x^l = act(h^l), h^{l+1} = h^l + L^(-alpha) (W^{l+1} x^l + b^{l+1}) for l = 1..L, and the readout
    reads h^{L+1}. With ``nonlin="post"`` it comes after them, as in the paper: x^0 = W^1 x,
    h^l = W^{l+1} x^{l-1} + b^{l+1}, x^l = x^{l-1} + a L^(-alpha) act(h^l), and the readout reads
    x^L. With ``nonlin="between"`` activations stand between the ``layers`` matrices of a block, and
    none at its ends: h^l = W^{l+1.1} x^{l-1}, x^l = x^{l-1} + a L^(-alpha) W^{l+1.2} act(h^l).
    W^{l+1} = sigma_w n^(-a_{l+1}) w^{l+1} in the blocks, W^l = n^(-a_l) w^l in the input map
    and the readout; w^l, b^l are N(0, 1) at the start. With a number of blocks L^(-alpha) is a
    number; with ``depth="L"`` it is a power, and the parameterization is asked for one block.

    Args:
        depth: Number of blocks L, at least 1; or ``"L"``, the symbol: limits in the depth.
        act: Activation, by catalogue name or as a function of an expression.
        alpha: The power of 1/L in front of a block: a number or its text; with ``depth="L"`` also
            an exponent with symbols (``tp.symbol("alpha")``). None: that of the parameterization,
            1/2 where it has none.
        weight_variance: sigma_w^2 of the blocks: a number or its text.
        bias_variance: sigma_b^2 of the blocks; None or 0: no biases.
        norm: What a block reads of the stream: ``"layer"``: centred and divided by its standard
            deviation over the coordinates; ``"rms"``: divided by the root of its mean square;
            ``"none"``: the stream itself.
        nonlin: ``"pre"``, ``"post"`` or ``"between"``: the activation before the weights, after
            them, or between the matrices of a block, of which there are two or more.
        center: Whether the average over the coordinates is taken off what a block adds.
        layers: The number of matrices of a block, each with its activation.
        multiplier: The number a in front of a block.
        shared: Whether all blocks have the same matrices.
        law: The law of the entries of the matrices of the blocks at the start, a row of
            ``program/laws``.
        along: With ``depth="L"`` how a matrix depends on itself along the depth at the start:
            ``"fresh"``, ``"fgn(3/4)"``, ``"rbf(1/10)"``, ``"rbf_increments(1/10)"``,
            ``"given(1, 1/2)"``.
        hurst: The same as ``along="fgn(H)"``: the Hurst exponent H, a number or a symbol.
        base: A number of blocks that counts as one: with a number L the power is of L / base.

    Raises:
        StudyError: A depth below 1, an unknown word, an alpha or a variance that is none.
        UnknownName: No such activation.
        TraceError: An activation that is not a function of an expression.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, section 6.3; with the activation before the
        weights section 8, blocks of several layers section 9. Marion, Fermanian, Biau, Vert,
        Scaling ResNets in the large-depth regime, Table 1: res-1 is ``"pre"``, res-2 and res-3
        are ``"between"`` with two layers.

    Example:
        >>> ResNet(4, "relu", alpha=1).words
        'a residual network of 4 blocks with relu, each times 4^(-1), without biases'
        >>> ResNet("L", "sin", nonlin="post", center=True).words
        'a residual network of L blocks with sin after the weights, centred, each times L^(-1/2), \
            without biases'
        >>> ResNet("L", "relu", alpha="4/5", nonlin="between", layers=2, hurst="4/5").words
        'a residual network of L blocks with relu between its 2 layers, fgn(4/5) along the depth, \
            each times L^(-4/5), without biases'
    """

    kind, size, normed = "residual network", ("of", "depth", "block"), "stream"
    depth: int | str
    act: str | Callable[[Expr], Expr] = "relu"
    alpha: Fraction | float | str | Ex | None = None
    weight_variance: Fraction | float | str = Fraction(1)
    bias_variance: Fraction | float | str | None = None
    norm: str = "none"
    nonlin: str = "pre"
    center: bool = False
    layers: int = 1
    multiplier: Fraction | float | str = Fraction(1)
    shared: bool = False
    law: str = "gaussian"
    along: str = FRESH
    hurst: Fraction | float | str | Ex | None = None
    base: int = 1
    _activation: Expr = field(init=False, repr=False, compare=False)
    _factors: tuple[Number, Number] = field(init=False, repr=False, compare=False)
    _front: Number | Power = field(init=False, repr=False, compare=False)
    _power: Ex = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        depth, hint = self.depth, "It counts the blocks; 'L' is the symbol."
        if depth != SYMBOL:
            depth = checks.whole(depth, "depth", least=1, each=checks.PART, hint=hint)
        chosen(self.norm, "norm", tuple(NORMS), "ResNet")
        chosen(self.nonlin, "nonlin", ("pre", "post", "between"), "ResNet")
        chosen(self.law, "law", tuple(LAWS), "ResNet")
        weights = variance_of(self.weight_variance, "weight_variance", "ResNet")
        biases = bias_variance_of(self.bias_variance, "ResNet")
        multiplier = self._said(exact, self.multiplier, "multiplier")
        if not multiplier:
            raise StudyError("multiplier is 0, so that no block adds anything.", where="ResNet")
        variances = (weights, biases or Fraction(1))
        factors: tuple[Number, ...] = tuple(root(variance) for variance in variances)
        front: Number | Power = Fraction(1)
        power = self._said(exponent, HALF if self.alpha is None else self.alpha, "alpha")
        alpha = power.constant
        base = checks.whole(self.base, "base", least=1, hint="A number of blocks.")
        if base > 1 and depth == SYMBOL:
            raise StudyError(
                f"the base is {base}, and the number of blocks is the symbol L.",
                where="ResNet",
                hint="Give it with a number of blocks: tp.at_depth(run, 64, base), or with the "
                "parameterization: 'depth-mup:8'.",
            )
        if alpha is None and depth != SYMBOL:
            raise StudyError(
                f"alpha is {power}, and the number of blocks is {depth}.",
                where="ResNet",
                hint="Symbols are for depth='L'; give a number.",
            )
        if alpha is None or not isinstance(depth, int):
            front = multiplier * L ** (-power)
        elif self.nonlin != "post" and not self.center:  # in front of the last weights of a block
            factors = tuple(
                multiplier * _branch(Fraction(depth, base), alpha, one) for one in variances
            )
        else:
            front = multiplier * _branch(Fraction(depth, base), alpha, Fraction(1))
        layers = checks.whole(self.layers, "layers", least=1, each=checks.PART, hint="Of a block.")
        if self.nonlin == "between" and layers < 2:
            raise StudyError(
                "an activation between the layers of a block of one layer.",
                where="ResNet",
                hint="layers=2: two matrices with one activation between them.",
            )
        self._settle(
            along=self._law_along(depth),
            depth=depth,
            alpha=None if self.alpha is None else power if alpha is None else alpha,
            _power=power,
            weight_variance=weights,
            bias_variance=biases,
            layers=layers,
            multiplier=multiplier,
            _factors=factors,
            _front=front,
        )

    def _law_along(self, depth: int | str) -> str:
        """The law along the depth, in its own words.

        Raises:
            StudyError: There is none, or it does not fit the rest.
        """
        text = str(self.along)
        if self.hurst is not None:
            if text not in (FRESH, f"fgn({self.hurst})"):
                raise StudyError(
                    "along= and hurst= say both what weights are along the depth.",
                    where="ResNet",
                    hint="hurst='3/4' is along='fgn(3/4)'.",
                )
            power = self._said(exponent, self.hurst, "hurst")
            if power.constant is not None and not 0 < power.constant <= 1:
                raise StudyError(
                    f"the Hurst exponent H is {power}, and no fractional noise has it.",
                    where="ResNet",
                    hint="0 < H < 1: 1/2 is independent blocks, below 1/2 is rougher; 1 is the "
                    "same matrix in all blocks.",
                )
            text = f"fgn({power})"
        try:
            law = along_of(text)
        except ProgramError as error:
            raise StudyError(error.message, where="ResNet", hint=error.hint) from None
        if not law.fresh and (depth != SYMBOL or self.shared or self.law != "gaussian"):
            raise StudyError(
                f"weights that are {law} along the depth are Gaussian, of blocks that differ, and "
                "of a depth that is the symbol.",
                where="ResNet",
                hint="Ask ResNet('L', ...) at depths: limit --depth 100,1000.",
            )
        return str(law)

    @staticmethod
    def _said(read: Callable[..., T], value: object, what: str) -> T:
        """A number, or an error that says whose it is."""
        try:
            return read(value, what=what)
        except StudyError as error:
            raise StudyError(error.message, where="ResNet", hint=error.hint) from None

    @property
    def words(self) -> str:
        """The architecture in a phrase."""
        number = f"{self.multiplier} " if self.multiplier != 1 else ""
        ratio = f"{self.depth}" if self.base == 1 else f"({self.depth}/{self.base})"
        factor = f"{number}{ratio}^(-{self._power})"
        biases = "with" if self.bias_variance else "without"
        own = [
            (self.nonlin == "post", " after the weights"),
            (self.nonlin == "between", f" between its {self.layers} layers"),
            (self.nonlin != "between" and self.layers > 1, f" in {self.layers} layers"),
            (self.shared, ", the same in all blocks"),
            (self.law != "gaussian", f", {self.law} entries"),
            (self.along != FRESH, f", {self.along} along the depth"),
            (self.center, ", centred"),
        ]
        return (
            f"{self._begun}{''.join(text for there, text in own if there)}, each times "
            f"{factor}, {biases} biases{spread(self.weight_variance, self.bias_variance)}"
        )

    @property
    def blocks(self) -> int | None:
        """The number of its blocks; None of the symbol L."""
        return self.depth if isinstance(self.depth, int) else None

    def deepened(self, alpha: Ex, base: int, name: str) -> ResNet:
        """The same with a power of L in front of its blocks.

        Args:
            alpha: The power of 1/L.
            base: The number of blocks that counts as one.
            name: The parameterization that says so, for messages.

        Raises:
            StudyError: It has another power, or another base.
        """
        if self.alpha is not None and alpha != self._power:
            raise StudyError(
                f"alpha is {self._power}, and {name} has {alpha}.",
                where="ResNet",
                hint="Leave alpha out, or take the parameterization 'depth:ALPHA;GAMMA'.",
            )
        base = one_base(base, None if self.base == 1 else self.base, name, "ResNet")
        own = base if self.blocks is not None else 1
        return replace(self, alpha=alpha, base=own)

    def forward(self, t: NetworkTracer, x: Scalar) -> Scalar:
        """The outputs; h and x are reported.

        With the activation first x^{L+1}, what the readout reads, is h^{L+1}.

        Args:
            t: Makes parameters.
            x: The input.

        Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, section 6.3.
        """
        post = self.nonlin == "post"
        stream: Vector = t.linear(t.n, "in", name="W1", label="1")(x)
        if post:
            t.watch("x", 0, stream)
        shared = self._maps(t, 1) if self.shared else []

        def block(number: int | Layer, stream: Vector) -> Vector:
            branch = self._added(t, number, stream, shared or self._maps(t, number))
            branch = branch - t.mean(branch) if self.center else branch
            stream = stream + (branch if self._front == 1 else self._front * branch)
            if post:
                t.watch("x", f"{number}", stream)
            return stream

        stream = t.repeat(self.depth, stream, block)
        last = "out" if isinstance(self.depth, str) else str(self.depth + 1)
        if not post:
            t.watch("h", last, stream)
            t.watch("x", last, stream)
        name = "Wout" if isinstance(self.depth, str) else f"W{self.depth + 2}"
        f: Scalar = t.linear(t.outputs, t.n, name=name, label=name.removeprefix("W"))(stream)
        return f

    def _added(
        self, t: NetworkTracer, number: int | Layer, stream: Vector, maps: Sequence[Linear[Any]]
    ) -> Vector:
        """What a block adds to the stream, its average included."""
        branch, post = stream, self.nonlin == "post"
        for layer, weights in enumerate(maps, 1):
            label = f"{number}" if self.layers == 1 else f"{number}.{layer}"
            norm = self.norm if layer == 1 else "none"
            if self.nonlin == "pre":
                branch = weights(activated(t, label, branch, self._activation, norm))
                continue
            branch = weights(read(t, label, branch, norm))
            if post or layer < self.layers:
                t.watch("h", label, branch)
                branch = nonlin(Fn(self._activation, 1), [branch])
        return branch

    def _maps(self, t: NetworkTracer, number: int | Layer) -> list[Linear[Any]]:
        """The linear maps of a block."""
        ends = [f"{number + 1}"]
        if self.layers > 1:
            ends = [f"{number + 1}.{layer}" for layer in range(1, self.layers + 1)]
        plain = root(Fraction(self.weight_variance)), root(Fraction(self.bias_variance or 1))
        return [
            t.linear(
                t.n,
                t.n,
                bool(self.bias_variance),
                name=f"W{end}",
                bias_name=f"b{end}",
                label=end,
                factors=self._factors if end == ends[-1] else plain,
                law=self.law,
                along="" if self.along == FRESH else self.along,
            )
            for end in ends
        ]


def _branch(depth: Fraction, alpha: Fraction, variance: Fraction) -> Number:
    """L^(-alpha) times a standard deviation, exact where the product is rational."""
    try:
        factor, deviation = root(depth, -alpha), root(variance)
        twice = 2 * alpha
        if isinstance(factor, float) and isinstance(deviation, float) and twice.denominator == 1:
            return root(variance * depth**-twice.numerator)
        return factor * deviation
    except OverflowError:
        raise StudyError(
            f"{depth}^({-alpha}), the factor of a block, is outside the range of a float.",
            where="ResNet",
            hint="alpha is 1/2 or 1 as a rule.",
        ) from None


ENTRY = ArchitectureFamily(
    "resnet",
    ResNet,
    text="the residual network: an input map, L blocks that add to one stream, a readout of it",
    source=Source(
        "Yang, Yu, Zhu, Hayou, Tensor Programs VI: Feature Learning in Infinite-Depth Neural "
        "Networks",
        "section 6.3",
        "2310.02244",
    ),
)
