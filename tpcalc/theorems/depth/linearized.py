"""Residual networks whose blocks are linear in what training adds to their matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

from tpcalc import checks
from tpcalc.dsl.powers import Layer, n
from tpcalc.dsl.vectors import Vector, nonlin
from tpcalc.errors import StudyError
from tpcalc.functions import Atom, Call, Expr, Fn, Var, const, derivative
from tpcalc.functions.expr import substitute, walk
from tpcalc.networks.architecture import read
from tpcalc.networks.architectures.resnet import ResNet
from tpcalc.networks.maps import Linear
from tpcalc.networks.tracer import NetworkTracer


@dataclass(frozen=True)
class Linearized(ResNet):
    """A residual network whose blocks are linear in the updates of their matrices."""

    kind = "residual network linear in the updates of each block,"

    def _maps(self, t: NetworkTracer, number: int | Layer) -> list[Linear[Any]]:
        """What training adds to the matrices of a block: it begins at 0."""
        maps = super()._maps(t, number)
        for one in maps:
            one.weights.mark = replace(one.weights.mark, start=Fraction(0))
        return maps

    def _added(
        self, t: NetworkTracer, number: int | Layer, stream: Vector, maps: Sequence[Linear[Any]]
    ) -> Vector:
        act = self.activation
        functions = [Fn(one, 1) for one in (act, _without_jumps(derivative(act, Var(0))))]
        value, change = read(t, f"{number}", stream, self.norm), 0 * stream

        def passed() -> tuple[Vector, Vector]:
            found, slope = (nonlin(one, [value]) for one in functions)
            return found, slope * change

        for layer, moving in enumerate(maps, 1):
            if self.nonlin == "pre":
                value, change = passed()
            start, size = t.matrix(f"{moving.weights.name}.0", law=self.law), n ** "-1/2"
            moved = moving(value) + moving.factors[0] * (size * (start @ change))
            value, change = moving.factors[0] * (size * (start @ value)), moved
            if self.nonlin == "post" or (self.nonlin == "between" and layer < self.layers):
                value, change = passed()
        return value + change


def linearized(net: ResNet) -> Linearized:
    r"""The same network with blocks that are linear in the updates of their matrices.

    A block with the matrices W_0 + dW is replaced by its first order in dW: of two layers with the
    activation phi after each, g = W_0^1 x and h = W_0^2 phi(g), it is
    phi(h) + phi'(h) dW^2 phi(g) + phi'(h) W_0^2 (phi'(g) dW^1 x). What the stream does to it is
    kept whole, and so is the gradient. Where phi' jumps, backward passes leave the jump out, as
    automatic differentiation does.

    Args:
        net: Residual blocks with any activation, norm and number of layers, without biases, their
            matrices drawn anew in every block.

    Returns:
        A network whose trained matrices dW begin at 0, beside W_0 with entries of variance 1 / n,
        which are not trained; for ``tp.Training``, ``tp.at_depth``, ``tp.limit`` and
        ``tp.simulate`` at numbers of blocks.

    Raises:
        StudyError: Blocks with biases, or whose matrices depend on each other.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, section 9.2.

    Example:
        >>> net = linearized(ResNet("L", "relu", nonlin="post", center=True, layers=2))
        >>> [(mark.label, str(mark.start)) for mark in net.marks]
        [('1', '1'), ('{l+1}.1', '0'), ('{l+1}.2', '0'), ('out', '1')]
    """
    checks.of_type(net, ResNet, "net")
    if net.bias_variance or net.shared or net.along != "fresh":
        raise StudyError(
            f"{net.words} has biases, or matrices that depend on each other.",
            where="linearized",
            hint="Leave out bias_variance, shared and along.",
        )
    return Linearized(**{one.name: getattr(net, one.name) for one in fields(net) if one.init})


def _without_jumps(expr: Expr) -> Expr:
    """A function whose jumps backward passes do not see; limits do."""
    flat: dict[Expr, Expr] = {}
    for part in walk(expr):
        if isinstance(part, Call) and part.atom.derivative is None:
            flat[part] = _flat(part.atom)(part.arg)
    return substitute(expr, flat)


def _flat(atom: Atom) -> Atom:
    facts = replace(atom.facts, surrogate=True, analytic=False)
    own = (f"flat_{atom.name}", atom.evaluate, lambda z: const(0))
    return Atom(*own, facts, atom.params, pieces=atom.pieces or atom)
