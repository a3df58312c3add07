"""The residual network of one neuron: the size of its first update, and its limit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import erf, exp, inf, isfinite, log1p, pi, sqrt

from tpcalc import checks
from tpcalc.errors import EvaluationError
from tpcalc.integrals.bounded import EPS, Bounded
from tpcalc.shown import Shown
from tpcalc.sources import Source
from tpcalc.theorems.closed import ClosedForm

OO = "oo"
# Every formula below is some ten float operations, none of which cancels more than a digit.
ROUNDING = 64 * EPS
POWERS = {"sgd": 1, "signsgd": 2, "adam": 2}


@dataclass(frozen=True, slots=True)
class FirstUpdate(Shown):
    r"""How far the first step moves the last layer of one neuron, per learning rate.

    To first order the step is $x_1^L - x_0^L = -\eta L^{-1/2} A_L$.

    Args:
        optimizer: What makes the step.
        blocks: The number of blocks, ``"oo"`` the limit.
        power: How the mean square of A_L grows, as a power of L.
        rate: The largest power of L that the learning rate may have without the step exploding.
        size: The mean square of A_L, divided by that power of L.

    Example:
        >>> found = first_update("sgd", "oo")
        >>> print(found.size, found.rate)
        E A_L^2 / L^1 = 403.429 (exact) 0
    """

    optimizer: str
    blocks: int | str
    power: Fraction
    rate: Fraction
    size: ClosedForm


def first_update(optimizer: str, blocks: int | str = OO) -> FirstUpdate:
    r"""The mean square of the first update of one neuron.

    The network is $x^L = \prod_l (1 + L^{-1/2} w_l) x^0$ with standard Gaussian weights, $x^0 = 1$
    and the gradient 1 at $x^L$. With $P_l$, the product without its factor l, the step is made of
    $A_L = L^{-1/2} \sum_l P_l^2$ under SGD and $A_L = \sum_l |P_l|$ under sign descent.

    Args:
        optimizer: ``"sgd"``, ``"signsgd"``, or ``"adam"``, which is sign descent in its first step.
        blocks: The number of blocks L, or ``"oo"``.

    Returns:
        E A_L^2 over its power of L, with that power and what it allows for the learning rate. Under
        sign descent it has the mean of $|1 + L^{-1/2} w|$; the paper leaves out the sign, which
        makes it 1, a difference of $O(e^{-L/2})$.

    Raises:
        UnknownName: Another optimizer.
        UsageError: A number of blocks that is none.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, section 3.1, equation 2.

    Example:
        >>> for blocks in (16, 256, "oo"):
        ...     print(first_update("adam", blocks).size)
        E A_L^2 / L^2 = 2.34586 (exact)
        E A_L^2 / L^2 = 2.69196 (exact)
        E A_L^2 / L^2 = 2.71828 (exact)
    """
    checks.one_of("optimizer", optimizer, POWERS)
    power = POWERS[optimizer]
    number = inf
    if blocks != OO:
        hint = "A number of blocks, or 'oo' for the limit."
        number = blocks = checks.whole(blocks, "blocks", least=1, hint=hint)
    value, formula = (_squares if power == 1 else _sizes)(number)
    size = _closed(f"E A_L^2 / L^{power}", value, value, formula, "section 3.1, equation 2")
    return FirstUpdate(optimizer, blocks, Fraction(power), Fraction(1 - power, 2), size)


def log_limit(
    noise: float, target: float, *, start: float = 1.0, readout: float = 1.0, lr: float = 1.0
) -> ClosedForm:
    r"""The limit of $\log(x_1^L / x^0)$ of one neuron after a step of SGD on $(V x^L - y)^2 / 2$.

    At a given $Z$, the limit of $L^{-1/2} \sum_l w_l$ and a standard Gaussian, $x_0^L$ tends to
    $x^0 e^{Z - 1/2}$ and the logarithm to $Z - 1/2 - \tau x_0^L / x^0$ with
    $\tau = \eta V (V x_0^L - y) x^0$. As a function of Z it is the limit law.

    Args:
        noise: Z.
        target: y.
        start: x^0.
        readout: V.
        lr: The learning rate.

    Returns:
        The number. The paper has $+1$ in place of $-1/2$, the limit of $\sum_l w_l^2 / L$ where the
        expansion of the logarithm has $-\sum_l w_l^2 / (2 L)$; it drops $1/x^0$ and the factor V.

    Raises:
        UsageError: An argument that is no number.
        EvaluationError: The result leaves the range of a float.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, section 3.2, equation 3, corrected.

    Example:
        >>> print(log_limit(0.5, target=2.0))
        log(x_1^L / x^0) = 1 (exact)
    """
    given = {"noise": noise, "target": target, "start": start, "readout": readout, "lr": lr}
    z, y, x, v, eta = (float(checks.real(value, name)) for name, value in given.items())
    last = v * x * (exp(z - 0.5) if z < 700 else inf)
    first, second = eta * (last * last), eta * last * y
    if not isfinite(first) or not isfinite(second):
        raise EvaluationError(
            "the limit of log(x_1^L / x^0) leaves the floating-point range.",
            hint="Take smaller numbers: noise, start, readout, target or learning rate.",
        )
    terms = (z, -0.5, -first, second)
    size = (1 + abs(z)) * sum(map(abs, terms))  # the error of z - 1/2 is that of its exponential
    formula = r"Z - \frac{1}{2} - \tau x_0^L / x^0"
    return _closed(
        "log(x_1^L / x^0)", sum(terms), size, formula, "section 3.2, equation 3, corrected"
    )


def _squares(blocks: float) -> tuple[float, str]:
    """E A_L^2 / L of SGD: fourth moments where the indices are equal, squares of second if not."""
    if blocks == inf:
        return exp(6.0), "e^6"
    share = 1 / blocks
    second, fourth = share, (6 + 3 * share) * share  # less 1
    equal, other = (exp((blocks - k) * log1p(fourth)) for k in (1, 2))
    value = share * equal + (1 - share) * other * (1 + second) ** 2
    return value, r"\left(m_4^{L-1} + (L-1) m_4^{L-2} m_2^2\right) / L"


def _sizes(blocks: float) -> tuple[float, str]:
    """E A_L^2 / L^2 of sign descent: mu is the mean of |1 + w / sqrt(L)|."""
    if blocks == inf:
        return exp(1.0), "e"
    share = 1 / blocks
    mu = erf(sqrt(blocks / 2)) + sqrt(2 * share / pi) * exp(-blocks / 2)
    equal, other = (exp((blocks - k) * log1p(share)) for k in (1, 2))
    value = share * equal + (1 - share) * other * mu**2
    return value, r"\left(L m_2^{L-1} + L (L-1) m_2^{L-2} \mu^2\right) / L^2"


def _closed(name: str, value: float, size: float, formula: str, item: str) -> ClosedForm:
    source = Source("Yang, Yu, Zhu, Hayou, Tensor Programs VI", item, "2310.02244")
    return ClosedForm(name, Bounded(value, ROUNDING * abs(size)).estimate(), formula, source)
