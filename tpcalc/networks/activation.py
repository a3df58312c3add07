"""The activation that a network applies everywhere, and networks with relu^p in its place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from tpcalc.activations.entries.relu_pow import relu_pow
from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Call, Expr, Fn
from tpcalc.networks.network import Architecture, Rewritten, is_sum
from tpcalc.program.base import Table, nonlin_of
from tpcalc.program.nodes import Node, Nonlin
from tpcalc.program.program import Program


def function_of(network: Architecture) -> Expr | None:
    """The one function of vectors in a network that is no sum; None where there is not one.

    Example:
        >>> import tpcalc as tp
        >>> function_of(tp.ResNet(2, "relu^2", norm="layer")).text
        'relu_pow[2](x0)'
    """
    nodes = filter(None, map(nonlin_of, network.smallest.nodes))
    found = {node.fn.expr for node in nodes if node.vectors and not is_sum(node.fn)}
    return found.pop() if len(found) == 1 else None


def power_of(network: Architecture) -> Ex | None:
    """The p of a network whose activation is relu^p; None of any other.

    Example:
        >>> import tpcalc as tp
        >>> str(power_of(tp.MLP(2, "relu"))), power_of(tp.MLP(2, "tanh"))
        ('1', None)
    """
    found = function_of(network)
    if not isinstance(found, Call) or found.atom.facts.homogeneity is None:
        return None
    degree = found.atom.facts.homogeneity
    power = degree if isinstance(degree, Ex) else as_ex(Fraction(str(degree)))
    return power if found.atom == relu_pow(power) else None


@dataclass(frozen=True)
class Replaced(Rewritten):
    """A network with another function in place of its activation; the names in it stay."""

    network: Architecture
    function: Expr

    def finished(self, program: Program) -> Program:
        """The program with the other function."""
        own = function_of(self.network)

        def swapped(node: Nonlin) -> Node:
            same = node.fn.expr == own
            return replace(node, fn=Fn(self.function, node.fn.vectors)) if same else node

        return self.rewritten(program, Table({Nonlin: swapped}, lambda node: node))
