"""Powers of the width in the first two steps, in closed form, for homogeneous activations.

Biases are in the first layer alone; everything holds for every degree p, a number or a symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tpcalc import checks
from tpcalc.docstrings import like
from tpcalc.errors import UsageError
from tpcalc.exponents import Ex, as_ex
from tpcalc.shown import Shown
from tpcalc.sources import INTEGRABLE, Source
from tpcalc.theorems.closed import Told
from tpcalc.training.parameterization import exponent, layers
from tpcalc.training.parameterizations.integrable import gamma, homogeneity

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class FirstPass(Shown, Told):
    """Powers of the width in the first forward and backward pass.

    Args:
        h: Of h_0^l, for the layers 1..L.
        x: Of x_0^l.
        f: Of f_0.
        dx: Of the gradients of f_0 by x_0^l.
        dh: Of those by h_0^l.
        source: Where the formulas are.

    Example:
        >>> found = first_pass((0, 1, 1))
        >>> [str(e) for e in found.h], str(found.f)
        (['0', '-1/2'], '-1')
    """

    h: tuple[Ex, ...]
    x: tuple[Ex, ...]
    f: Ex
    dx: tuple[Ex, ...]
    dh: tuple[Ex, ...]
    source: Source


@dataclass(frozen=True, slots=True)
class NaiveRates(Shown, Told):
    """Powers of the width in the first step of Naive-IP, for p = 1.

    Args:
        updates: Of the contributions W^l(1) - W^l(0) to the layers 1..L.
        output: Of that of the output layer.
        f: Of f_1.
        source: Where the formulas are.

    Example:
        >>> found = naive_rates(3)
        >>> [str(e) for e in found.updates], str(found.output), str(found.f)
        (['-1', '-1/2', '-1'], '-2', '-1')
    """

    updates: tuple[Ex, ...]
    output: Ex
    f: Ex
    source: Source


def first_updates(a: Sequence[object], c: Sequence[object], p: object = 1) -> tuple[Ex, ...]:
    """The powers of the width in front of the normalised first updates.

    Args:
        a: The exponents a_1..a_{L+1} of the weights: numbers, texts or ``Ex``.
        c: The exponents c_1..c_{L+1} of the learning rates of the first step.
        p: The degree of homogeneity, a number or a symbol.

    Returns:
        e_1..e_{L+1}: the first update is -eta chi_0 m^e_l times an outer product of the scale-free
        passes (over m for l >= 2), so that its contribution is of order one for e_l = 0.

    Raises:
        UsageError: Fewer than two exponents, or rows of different lengths.

    Source: Hajjar, Chizat, Giraud, Lemma F.4.

    Example:
        >>> [str(e) for e in first_updates((0, 1, 1, 1), (-1, -2, -2, -1))]
        ['-1', '-1/2', '-1/2', '-1']
    """
    return _less(c, lambda: first_rates(a, p))


@like(first_updates)
def first_pass(a: Sequence[object], p: object = 1) -> FirstPass:
    """The powers of the width in the first pass, with a homogeneous activation.

    Returns:
        h_0^l ~ m^e_f(l) with e_f(l) = sum_k p^(l-k) w_k, w_1 = -a_1 and w_k = 1/2 - a_k; gradients
        ~ m^(-a_{L+1} + e_b(l) + (p-1) sum_k e_f(k)) with e_b(l) = sum_{k>l} w_k.

    Raises:
        UsageError: Fewer than two exponents.

    Source: Hajjar, Chizat, Giraud, Lemmas F.2 and F.3.

    Example:
        >>> [str(e) for e in first_pass((0, 1, 1, 1, 1)).dh]
        ['-5/2', '-2', '-3/2', '-1']
        >>> [str(e) for e in first_pass((0, 1, 1, 1), "p").h]
        ['0', '-1/2', '-1/2 - 1/2*p']
    """
    rows, degree = _row(a, "a"), homogeneity(p)
    w = _powers(rows)
    depth = len(rows) - 1
    h: list[Ex] = []
    for weight in w:
        h.append(weight if not h else degree * h[-1] + weight)
    f = h.pop()
    dx, dh = [-rows[-1]], list[Ex]()
    for layer in range(depth, 0, -1):
        dh.append(dx[-1] + (degree - 1) * h[layer - 1])
        dx.append(dh[-1] + w[layer - 1])
    return FirstPass(
        tuple(h),
        tuple(degree * e for e in h),
        f,
        tuple(reversed(dx[:-1])),
        tuple(reversed(dh)),
        INTEGRABLE.at("Lemmas F.2 and F.3"),
    )


@like(first_updates)
def first_rates(a: Sequence[object], p: object = 1) -> tuple[Ex, ...]:
    """The exponents c_l of the first step at which every first update contributes at order one.

    Returns:
        c_1..c_{L+1}: with S = sum_k p^(L-k+1) w_k they are -(a_{L+1} + 2 a_1) + S - w_1,
        1 - (a_{L+1} + 2 a_l) + S - w_l between, and 1 - 2 a_{L+1} + S.

    Raises:
        UsageError: Fewer than two exponents.

    Source: Hajjar, Chizat, Giraud, Corollaries F.4.1 and F.4.2.

    Example:
        >>> [str(c) for c in first_rates((0, "3/4", "3/5", "9/10"))]
        ['-5/4', '-3/2', '-27/20', '-23/20']
        >>> first_rates((0, 1, 1, 1), "p")[0] == gamma(3, Ex.symbol("p"))[0]
        True
    """
    rows, degree = _row(a, "a"), homogeneity(p)
    w = _powers(rows)
    last, total = rows[-1], as_ex(0)
    for weight in w[:-1]:
        total = degree * (total + weight)
    hidden = [
        1 - (last + 2 * own) + total - weight
        for own, weight in zip(rows[1:-1], w[1:-1], strict=True)
    ]
    return (-(last + 2 * rows[0]) + total - w[0], *hidden, 1 - 2 * last + total)


@like(first_updates)
def later_updates(a: Sequence[object], c: Sequence[object]) -> tuple[Ex, ...]:
    """The powers of the width in later updates, after a first step of order one in every layer.

    Args:
        a: The exponents a_1..a_{L+1} of the weights; a_{L+1} is 1.
        c: The exponents c_1..c_{L+1} of the learning rates of that step.

    Returns:
        -(1 + 2 a_1 + c_1), -(2 a_l + c_l) between, and -(2 a_{L+1} - 1 + c_{L+1}).

    Raises:
        UsageError: Fewer than two exponents, rows of different lengths, or another a_{L+1}.

    Source: Hajjar, Chizat, Giraud, Lemma H.4.

    Example:
        >>> [str(e) for e in later_updates((0, 1, 1, 1), (-1, -2, -2, -1))]
        ['0', '0', '0', '0']
    """
    return _less(c, lambda: later_rates(a))


@like(first_updates)
def later_rates(a: Sequence[object]) -> tuple[Ex, ...]:
    """The exponents c_l of later steps, after a first step of order one in every layer.

    Args:
        a: The exponents a_1..a_{L+1} of the weights; a_{L+1} is 1.

    Returns:
        -(1 + 2 a_1), -2 a_l between, and 1 - 2 a_{L+1}.

    Raises:
        UsageError: Fewer than two exponents, or another a_{L+1}.

    Source: Hajjar, Chizat, Giraud, Lemma H.4.

    Example:
        >>> [str(c) for c in later_rates((0, 1, 1, 1))]
        ['-1', '-2', '-2', '-1']
    """
    rows = _row(a, "a")
    if rows[-1] != as_ex(1):
        raise UsageError(
            f"a_{len(rows)} is {rows[-1]}; after a first step of order one the gradients are of "
            "order 1/m, as the formula needs, where it is 1.",
            hint="tp.solve takes other exponents.",
        )
    return (-1 - 2 * rows[0], *(-2 * own for own in rows[1:-1]), 1 - 2 * rows[-1])


@like(first_updates)
def growth(depth: int, p: object = 1) -> tuple[Ex, ...]:
    """The powers of the width in the second updates of an IP that keeps its first learning rates.

    Args:
        depth: Number of hidden layers L.

    Returns:
        -(1 + gamma_1), -(2 + gamma_l) between, and -(1 + gamma_{L+1}).

    Raises:
        UsageError: A depth below 1.

    Source: Hajjar, Chizat, Giraud, Theorem 3.2, Lemma H.4.

    Example:
        >>> [str(e) for e in growth(3)]
        ['1', '1/2', '1/2', '1']
    """
    count = checks.whole(depth, "depth", least=1)
    a = layers(count, as_ex(0), as_ex(1), as_ex(1))
    return later_updates(a, gamma(count, homogeneity(p)))


def naive_rates(depth: int) -> NaiveRates:
    """The rates at which the first step of Naive-IP vanishes, for p = 1.

    Args:
        depth: Number of hidden layers L, at least 2; from 3 on the step vanishes.

    Returns:
        -(L - 1)/2 for layer 1, -(L + l - 4)/2 for the layers l between, -(L - 1) for the output
        layer (-1/2 for L = 2, where the last layer moves), and max(-L/2, -(L - 2)) for f_1; no
        biases above the first layer.

    Raises:
        UsageError: A depth below 2.

    Source: Hajjar, Chizat, Giraud, Proposition 3.1 and Lemmas F.2 to F.4.

    Example:
        >>> [str(e) for e in naive_rates(4).updates]
        ['-3/2', '-1', '-3/2', '-2']
    """
    count = checks.whole(depth, "depth", least=2, hint="With 1 hidden layer Naive-IP is muP.")
    between = [as_ex(-HALF * (count + layer - 4)) for layer in range(2, count + 1)]
    f = max(-HALF * count, Fraction(-(count - 2)))
    output = -HALF * (count - 1) + max(-HALF * (count - 1), Fraction(-(count - 2)))
    return NaiveRates(
        (as_ex(-HALF * (count - 1)), *between),
        as_ex(output),
        as_ex(f),
        INTEGRABLE.at("Proposition 3.1, Lemmas F.2 to F.4"),
    )


@like(first_updates)
def relative_displacements(
    a: Sequence[object], c: Sequence[object], p: object = 1
) -> tuple[Ex, ...]:
    """The powers of the width in |W^l(1) - W^l(0)| / |W^l(0)|, in the Frobenius norm.

    Returns:
        e_1 + a_1 for layer 1, and e_l + a_l - 1 above, with e_l of ``first_updates``: between the
        first layer and the last it is -1/2 in muP, and 0 in IP-LLR.

    Raises:
        UsageError: Fewer than two exponents, or rows of different lengths.

    Source: Hajjar, Chizat, Giraud, Remark F.6.

    Example:
        >>> [str(e) for e in relative_displacements((0, "1/2", 1), (-1, -1, -1))]
        ['0', '-1/2', '0']
    """
    rows = _row(a, "a")
    first, *others = first_updates(a, c, p)
    return (
        first + rows[0],
        *(e + own - 1 for e, own in zip(others, rows[1:], strict=True)),
    )


def _less(c: Sequence[object], rates: Callable[[], tuple[Ex, ...]]) -> tuple[Ex, ...]:
    """By how much each rate is larger than the one at which its update is of order one."""
    given, needed = _row(c, "c"), rates()
    if len(given) != len(needed):
        raise UsageError(f"a has {len(needed)} exponents, c has {len(given)}.")
    return tuple(want - rate for want, rate in zip(needed, given, strict=True))


def _powers(a: Sequence[Ex]) -> list[Ex]:
    """w_l: what a layer multiplies the size of its input by."""
    return [-a[0], *(HALF - own for own in a[1:])]


def _row(values: Sequence[object], name: str) -> tuple[Ex, ...]:
    found = checks.sequence(values, name)
    if len(found) < 2:
        raise UsageError(
            f"{name} has {len(found)} exponents; a network has at least 2 layers of weights.",
            hint="Give one for each of the layers 1..L+1.",
        )
    return tuple(
        exponent(value, what=f"{name}_{layer}") for layer, value in enumerate(found, start=1)
    )
