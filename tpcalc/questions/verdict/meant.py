"""Where a network is not the one that a parameterization was defined for."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Call, Expr, Var
from tpcalc.functions.expr import Pow
from tpcalc.networks.chain import Chain, chain_of
from tpcalc.networks.network import Architecture
from tpcalc.training.parameterization import exponent
from tpcalc.training.parameterizations import Parameterization


def meant_for(parameterization: Parameterization, architecture: Architecture) -> tuple[str, ...]:
    """What a reader may have forgotten: the degree p of ip-llr, biases.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> from tpcalc.training.parameterizations import lookup
        >>> print(*meant_for(lookup("ip-llr"), MLP(3, "relu^2", bias="first")))
        ip-llr has p = 1 here, and the activation is homogeneous of degree 2: the first learning \
rates gamma_l(p) are meant with p = 2, which is ip-llr:2
    """
    network = chain_of(architecture)
    if network is None or network.skips:
        return ()
    return (*_degree(parameterization, network), *_biases(parameterization, network))


def _degree(parameterization: Parameterization, network: Chain) -> Iterator[str]:
    degree = _homogeneity(network.activation)
    if parameterization.name != "ip-llr" or degree is None:
        return
    own = exponent(dict(parameterization.values).get("p", 1), what="p of ip-llr")
    power = as_ex(degree)
    if power != own and power != as_ex(0):
        yield (
            f"ip-llr has p = {own} here, and the activation is homogeneous of degree {power}: the "
            f"first learning rates gamma_l(p) are meant with p = {power}, which is ip-llr:{power}"
        )


def _homogeneity(found: Expr | None) -> Ex | Fraction | None:
    """The degree of homogeneity of an activation that is one function, or a power."""
    match found:
        case Call(atom=atom, arg=Var()):
            degree = atom.facts.homogeneity
            return degree if isinstance(degree, Ex | Fraction) else None
        case Pow(base=Var(), exponent=power):
            return power
        case Var():
            return Fraction(1)
    return None


def _biases(parameterization: Parameterization, network: Chain) -> Iterator[str]:
    if parameterization.biases == "first" and max(network.biased, default=1) > 1:
        yield (
            f"{parameterization.name} is defined with biases in the first layer alone "
            "(bias 'first'); this network has them above it as well"
        )
    if parameterization.name == "ip-bias" and not network.biased:
        yield "ip-bias is defined with biases in all layers (bias 'all'); this network has none"
