"""What the layers of a network are: plain records, read in order of computation."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from tpcalc.errors import StudyError
from tpcalc.functions import Expr, Fn

__all__ = [
    "Addition",
    "BatchNorm",
    "Bias",
    "Dense",
    "Elementwise",
    "Family",
    "Input",
    "LayerNorm",
    "Span",
    "Step",
]

Number = Fraction | float
Parents = tuple[int, ...]
Family = Literal["gaussian", "orthogonal", "padded", "gaussian-gaussian"]
Span = Literal["all", "directions", "scalar"]


@dataclass(frozen=True, slots=True)
class Input:
    """The inputs of the network; the first layer, and no other.

    Args:
        parents: None.

    Example:
        >>> Input().parents
        ()
    """

    parents: Parents = ()


@dataclass(frozen=True, slots=True)
class Dense:
    """Multiplication by a random matrix W of n rows, rank r and k columns (the fan-in).

    For every family E W_ij^2 = (r / n) variance / k; with full rank that is variance / k.

    Args:
        variance: sigma^2.
        family: ``"gaussian"``: N(0, variance / k) entries, or C A with r orthonormal columns C and
            such an A below full rank; ``"orthogonal"``: sigma U V^T with Haar U and V;
            ``"padded"``: sigma times r orthonormal columns, and columns of 0;
            ``"gaussian-gaussian"``: C A with N(0, 1 / n) entries in C.
        rank: r / n.
        width: n over the width of the network.
        size: n itself, for an output of fixed size.
        parents: The layer that it reads; () for the one before.

    Raises:
        StudyError: A variance, rank, width or size that is not positive, or an unknown family.

    Source: On the initialisation of wide low-rank feedforward neural networks, equation 2.

    Example:
        >>> Dense(4.0, rank=0.25).family
        'gaussian'
    """

    variance: Number = 1.0
    family: Family = "gaussian"
    rank: Number = 1.0
    width: Number = 1.0
    size: int | None = None
    parents: Parents = ()

    def __post_init__(self) -> None:
        _positive(self.variance, "the variance of the weights", "Dense")
        _positive(self.width, "the width", "Dense")
        if self.family not in get_args(Family):
            raise StudyError(
                f"weights are {self.family!r}.",
                where="Dense",
                hint=f"They are {', '.join(get_args(Family))}.",
            )
        if not 0 < self.rank <= 1:
            raise StudyError(
                f"the rank is {self.rank} of the width.",
                where="Dense",
                hint="It is above 0 and at most 1.",
            )
        if self.size is not None and self.size < 1:
            raise StudyError(f"the size is {self.size}.", where="Dense", hint="It is at least 1.")


@dataclass(frozen=True, slots=True)
class Bias:
    """Addition of one random vector to the layer of every input.

    Args:
        variance: Of its entries, or of its coefficients.
        span: ``"all"``: independent entries; ``"directions"``: C b with independent entries b,
            where C spans the columns of the dense layer that it reads; ``"scalar"``: one b for
            all directions, b (C_1 + ... + C_r): its square does not average out in wide layers.
        parents: The layer that it reads; () for the one before.

    Raises:
        StudyError: A variance that is not positive, or an unknown span.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 1.

    Example:
        >>> Bias(0.1).span
        'all'
    """

    variance: Number
    span: Span = "all"
    parents: Parents = ()

    def __post_init__(self) -> None:
        _positive(self.variance, "the variance of the biases", "Bias")
        if self.span not in get_args(Span):
            raise StudyError(
                f"the span of the biases is {self.span!r}.",
                where="Bias",
                hint=f"It is {', '.join(get_args(Span))}.",
            )


@dataclass(frozen=True, slots=True)
class Elementwise:
    """A function of every coordinate.

    Args:
        fn: An expression of ``Var(0)``, or a function of as many vectors as there are parents.
        parents: The layers that it reads; () for the one before.

    Raises:
        StudyError: The function takes scalars.

    Example:
        >>> from tpcalc.catalog.activations import lookup
        >>> Elementwise(lookup("relu").fn).function.text
        'relu(x0)'
    """

    fn: Fn | Expr
    parents: Parents = ()

    def __post_init__(self) -> None:
        if isinstance(self.fn, Fn) and (self.fn.scalars or not self.fn.vectors):
            raise StudyError(
                f"a layer applies a function of {self.fn.vectors} vectors and {self.fn.scalars} "
                "scalars.",
                where="Elementwise",
                hint="It takes vectors alone, at least one.",
            )

    @property
    def function(self) -> Fn:
        """The function with the number of its arguments."""
        return self.fn if isinstance(self.fn, Fn) else Fn(self.fn, max(1, len(self.parents)))


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """Subtraction of the mean over coordinates, division by their standard deviation.

    Args:
        eps: What is added to the variance.
        parents: The layer that it reads; () for the one before.
        centred: Whether the mean is subtracted; without it this is RMS norm.

    Raises:
        StudyError: A negative eps.

    Example:
        >>> LayerNorm().eps
        0.0
    """

    eps: float = 0.0
    parents: Parents = ()
    centred: bool = True

    def __post_init__(self) -> None:
        _addend(self.eps, "LayerNorm")


@dataclass(frozen=True, slots=True)
class BatchNorm:
    """The same over the batch, for each coordinate; always over the batch at hand.

    Args:
        eps: What is added to the variance.
        parents: The layer that it reads; () for the one before.

    Raises:
        StudyError: A negative eps.

    Example:
        >>> BatchNorm(1e-6).eps
        1e-06
    """

    eps: float = 0.0
    parents: Parents = ()

    def __post_init__(self) -> None:
        _addend(self.eps, "BatchNorm")


@dataclass(frozen=True, slots=True)
class Addition:
    """A weighted sum of layers.

    Args:
        weights: One for each layer that is added, none 0.
        parents: The layers, in the order of the weights.

    Raises:
        StudyError: No weights, a weight of 0, or not one for each layer.

    Example:
        >>> Addition((0.5, 1.0), (1, 3)).weights
        (0.5, 1.0)
    """

    weights: tuple[Number, ...]
    parents: Parents

    def __post_init__(self) -> None:
        if not self.weights or 0 in self.weights or len(self.weights) != len(self.parents):
            raise StudyError(
                f"{len(self.parents)} layers are added with the weights "
                f"{', '.join(map(str, self.weights)) or 'none'}.",
                where="Addition",
                hint="Give one for each layer that is added, none of them 0.",
            )


Step = Input | Dense | Bias | Elementwise | LayerNorm | BatchNorm | Addition


def _positive(value: Number, what: str, where: str) -> None:
    if not 0 < value < float("inf"):
        raise StudyError(f"{what} is {value}.", where=where, hint="It is larger than 0.")


def _addend(value: float, where: str) -> None:
    if not 0 <= value < float("inf"):
        raise StudyError(f"eps is {value}.", where=where, hint="It is at least 0.")
