"""What formulas of a first step are asked with: an activation, a depth, inputs, a rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from inspect import Signature, signature
from typing import Any, Protocol, TypeVar, cast

from tpcalc import checks
from tpcalc.docstrings import named_after
from tpcalc.errors import UsageError
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.theorems.integrable.forms.gaussian import Pair
from tpcalc.theorems.integrable.forms.nonlinearity import Activation, Nonlinearity, nonlinearity

Input = Sequence[float]
Found = TypeVar("Found", covariant=True)


class Form(Protocol[Found]):
    """A formula of the first step; each takes those of these arguments that it says."""

    def __call__(
        self,
        act: Activation,
        depth: int,
        xi0: Input | None = None,
        xi: Input | None = None,
        *,
        eta: float,
        chi: float = -1.0,
        bias: str = "first",
        output_bias: float = 0.0,
        u: float | Sequence[float] = 1.0,
        k: Sequence[float] | None = None,
        seed: int = 0,
    ) -> Found:
        """Its answer.

        Args:
            act: The activation: a catalogue name, or a function of an expression.
            depth: Number of hidden layers L, at least {least}.
            xi0: The training input.
            xi: The query.
            eta: The base learning rate.
            chi: The derivative of the loss by f_0, at f_0 = 0.
            bias: ``"first"``: biases in the first layer; ``"none"``.
            output_bias: The initial bias of the output, v^{{L+1}}.
            u: The means of the initial weights of the layers 2..L+1: one number for all, or L.
            k: In place of the inputs, k(xi_0, xi_0), k(xi_0, xi) and k(xi, xi).
            seed: Of samples, where an integral has no closed form and no quadrature.

        Raises:
            UsageError: A depth below {least}, or inputs that do not fit.
            NotDifferentiable: The activation jumps.
            EvaluationError: A degree of homogeneity above 2 that is no whole number, or numbers
                that leave the range of a float.
        """
        ...


@dataclass(frozen=True)
class Asked:
    """What a formula was asked with; each part is checked where it is read."""

    given: dict[str, Any]
    least: int = 2
    hint: str | None = None

    @property
    def sigma(self) -> Nonlinearity:
        """The activation."""
        return nonlinearity(self.given["act"])

    @property
    def depth(self) -> int:
        """The number of hidden layers."""
        return checks.whole(self.given["depth"], "depth", least=self.least, hint=self.hint)

    @property
    def pair(self) -> Pair:
        """The covariances of first-layer preactivations."""
        given = self.given
        return covariances(given["xi0"], given["xi"], given.get("bias", "first"), given["k"])

    @property
    def rate(self) -> Bounded:
        """-eta chi_0."""
        return learning(self.given["eta"], self.given["chi"])

    @property
    def seed(self) -> int:
        """Of samples."""
        return checks.whole(self.given["seed"], "seed")


def form(
    takes: str, *, least: int = 2, hint: str | None = None
) -> Callable[[Callable[[Asked], Found]], Form[Found]]:
    """The formula of an answer: it takes arguments by name, and is described with their texts."""
    known, said = (
        signature(Form.__call__).parameters,
        (Form.__call__.__doc__ or "").format(least=least),
    )

    def make(answer: Callable[[Asked], Found]) -> Form[Found]:
        returned = signature(answer, eval_str=True).return_annotation
        own = Signature([known[name] for name in takes.split()], return_annotation=returned)

        def asking(*args: Any, **kwargs: Any) -> Found:
            bound = own.bind(*args, **kwargs)
            bound.apply_defaults()
            return answer(Asked(bound.arguments, least, hint))

        return cast(Form[Found], named_after(asking, answer, own, said))

    return make


def covariances(xi0: Input | None, xi: Input | None, bias: str, k: Sequence[float] | None) -> Pair:
    """k(xi_0, xi_0), k(xi_0, xi) and k(xi, xi), with k = xi . xi' + 1 under a first-layer bias."""
    _placed(bias)
    if k is not None:
        if xi0 is not None or xi is not None:
            raise UsageError("both inputs and their covariances k are given.", hint="Give one.")
        given = [Fraction(checks.real(value, "an entry of k")) for value in checks.sequence(k, "k")]
        if len(given) != 3:
            raise UsageError(
                f"k has {len(given)} numbers; it must have 3.", hint="k00, k01 and k11, in order."
            )
        k00, k01, k11 = given
    else:
        rows = [exact_row(xi0, "xi0"), exact_row(xi, "xi")]
        (k00, k01), (_, k11) = table(rows, bias)
    if k00 <= 0 or k11 < 0 or k01 * k01 > k00 * k11:
        raise UsageError(
            f"k00 = {float(k00):g}, k01 = {float(k01):g}, k11 = {float(k11):g} are no covariances "
            "of preactivations that move.",
            hint="k00 is positive, k11 is not negative and k01^2 is at most k00 k11.",
        )
    return Pair(bounded(k00), bounded(k01), bounded(k11))


def table(rows: Sequence[Sequence[Fraction]], bias: str) -> list[list[Fraction]]:
    """The covariances of first-layer preactivations, exactly."""
    _placed(bias)
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        raise UsageError(f"the inputs have {lengths[0]} and {lengths[-1]} features.")
    one = Fraction(1 if bias == "first" else 0)
    return [[_dot(left, right) + one for right in rows] for left in rows]


def exact_row(value: Input | None, name: str) -> tuple[Fraction, ...]:
    """An input as exact numbers."""
    if value is None:
        raise UsageError(f"{name} is not given.", hint="Give xi0 and xi, or k=(k00, k01, k11).")
    found = checks.sequence(value, name)
    if not found:
        raise UsageError(f"{name} is empty.")
    return tuple(Fraction(checks.real(entry, f"an entry of {name}")) for entry in found)


def learning(eta: float, chi: float) -> Bounded:
    """-eta chi."""
    return -(bounded(checks.real(eta, "eta")) * bounded(checks.real(chi, "chi")))


def _placed(bias: str) -> None:
    if bias not in ("first", "none"):
        raise UsageError(
            f"bias is {bias!r}; the formula is for biases in the first layer or nowhere.",
            hint="Write bias='first' or bias='none'; tp.limit takes all networks.",
        )


def _dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))
