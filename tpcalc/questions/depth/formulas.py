"""``recursion``: what blocks add to kernels at the start, as formulas of a page."""

from __future__ import annotations

from typing import Any

from tpcalc.evaluate.closure.gaussians import is_odd
from tpcalc.questions.depth.shape import Unlike, trunk_of
from tpcalc.recursions.trunk import HALF
from tpcalc.results import Formula
from tpcalc.training.generic import generic_data
from tpcalc.training.training import Training

FUNCTIONS = ("C", "D", "V", "V1")
TRAINED = ("A", "B", "K", "A1")
STREAM = "the stream: C(l) is <x_i | x_j> after block l, V(C) is Cov(phi(z_i), phi(z_j))"
ADJOINT = "its adjoint: D(l) is <dx_i | dx_j> after block l, V1(C) is E phi'(z_i) phi'(z_j)"
LIMIT = "in the limit of the depth, p = l / L"
STEPS = (
    "over the steps t, but for a jump at p = q: A(t, r, p, q) is what of the Gaussians that step r "
    "drew in block q is in x_t at p (Gamma), A1 of those of transposes; C(t, s, p) is <x_t | x_s>"
)
BACK = "B(t, r, p, q) is the same of dx_t, K what dx_t is moved by x_s"


def recursion(training: Training) -> tuple[tuple[str, Formula], ...]:
    """Kernels over the blocks before the first update; z are Gaussians of covariance C.

    Source: Tensor Programs VI, section 6; Appendix E for phi that is not the identity.

    Example:
        >>> import tpcalc as tp
        >>> net = tp.ResNet("L", "relu", nonlin="post", center=True)
        >>> run = tp.Training(net, "mup", tp.Samples(((1.0,),), ((1.0,),)), steps=1)
        >>> print(recursion(run)[0][1].text)
        C(l) = C(l - 1) + V(C(l - 1))/L
    """
    try:
        trunk = trunk_of(training.replace(data=generic_data(training)))
    except Unlike:
        return ()
    if not (trunk.centred or trunk.linear or is_odd(trunk.activation)):
        return ()
    import sympy

    blocks, layer, place = sympy.symbols("L l p", positive=True)
    stream, adjoint, added, slope = (sympy.Function(name) for name in FUNCTIONS)
    front = sympy.nsimplify(trunk.multiplier, rational=True) ** 2
    size = front * blocks ** (-2 * sympy.Rational(trunk.alpha))
    before = stream(layer - 1)
    found = [
        (STREAM, stream(layer), before + size * added(before)),
        (ADJOINT, adjoint(layer - 1), (1 + size * slope(before)) * adjoint(layer)),
    ]
    if trunk.alpha == HALF:
        here = stream(place)
        found += [
            (f"{LIMIT}: {part}", sympy.diff(left, place), front * right)
            for part, left, right in (
                ("C", here, added(here)),
                ("D", adjoint(place), -slope(here) * adjoint(place)),
            )
        ]
    if trunk.alpha == trunk.gamma == HALF:
        found += _over_steps(trunk.linear, sympy.nsimplify(trunk.multiplier, rational=True))
    return tuple((name, _formula(left, right)) for name, left, right in found)


def _over_steps(linear: bool, front: Any) -> list[tuple[str, Any, Any]]:
    """Gamma of a step from those before, where the limit is a functional integral."""
    import sympy

    t, r, s = sympy.symbols("t r s", integer=True)
    p, q, rate = sympy.symbols("p q eta", positive=True)
    stream, adjoint, pull, inner = (sympy.Function(name) for name in TRAINED)
    kernel, slope = (sympy.Function(name) for name in ("C", "V1"))
    drift = front * inner(t, s, p, p) - rate * front**2 * kernel(t, s, p)
    moved = adjoint(s, r, p, q) * drift * (1 if linear else slope(t, s, p))
    back = pull(t, s, p) * stream(s, r, p, q)
    last = t - 1 if linear else t
    return [
        (STEPS, sympy.diff(stream(t, r, p, q), p), sympy.Sum(moved, (s, 0, t - 1))),
        (BACK, sympy.diff(adjoint(t, r, p, q), p), -sympy.Sum(back, (s, 0, last))),
    ]


def _formula(left: Any, right: Any) -> Formula:
    import sympy
    from sympy.printing.mathml import mathml

    parts = [mathml(side, printer="presentation") for side in (left, right)]
    for name in (*FUNCTIONS, *TRAINED):  # that printer has names of functions in small letters
        parts = [part.replace(f"<mi>{name.lower()}</mi>", f"<mi>{name}</mi>") for part in parts]
    return Formula(
        " = ".join(map(str, (left, right))),
        " = ".join(map(sympy.latex, (left, right))),
        f'<math display="block"><mrow>{parts[0]}<mo>=</mo>{parts[1]}</mrow></math>',
    )
