"""Theorem 5.2: what IP-bias learns first hardly depends on the data."""

from __future__ import annotations

from collections.abc import Iterator

from tpcalc.dsl import extend
from tpcalc.dsl.powers import n
from tpcalc.dsl.tracer import Tracer
from tpcalc.dsl.vectors import Vector
from tpcalc.names import layered, stepped
from tpcalc.results import Claim, Hypothesis, Samples, Theorem
from tpcalc.theorems.integrable.predicates.case import Case, theorem
from tpcalc.theorems.integrable.predicates.claims import Size, answered, bounds, vanishing
from tpcalc.theorems.integrable.predicates.setting import (
    continuous_loss,
    hidden_layers,
    named,
    smooth,
)
from tpcalc.training.generic import far_query


@theorem
def weak_data_dependence(case: Case) -> Theorem:
    """Whether the start and first updates of IP-bias depend on the data, above its first layers.

    The limits of h_0^l and x_0^l for l >= 2 and of f_0 do not depend on the input; those of the
    first updates of the layers 3 to L + 1, applied to a vector that does not depend on the first
    training input, do not depend on it either.

    Args:
        architecture: The network, or a training run (``tp.Training``) and nothing of it besides.
        parameterization: A catalogue name or a parameterization.
        data: Training data; None: generic data.
        derive: Whether claims are derived from the program besides.
        settings: As ``tp.Training`` takes them: steps (2), lr, loss, batch, ...

    Returns:
        The answer; each claim is the difference between two inputs of one network.

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UnknownName: No such parameterization or loss.

    Source: Hajjar, Chizat, Giraud, Theorems 5.2 and K.1.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = weak_data_dependence(MLP(3, "tanh", bias="all"), "ip-bias")
        >>> found.answer, found.differs
        ('holds', False)
        >>> found = weak_data_dependence(MLP(3, "tanh"), "ip-bias", derive=False)
        >>> found.answer, [each.text for each in found.missing]
        ('outside', ['biases in all layers'])
    """
    return answered(
        case,
        "weak_data_dependence",
        "IP-bias: h_0 above layer 1, f_0 and the first updates above layer 2 do not feel the data",
        "Theorems 5.2 and K.1",
        (is_ip_bias, _all_biases, lambda one: hidden_layers(one, 2), continuous_loss),
        _claims,
        smoothness=smooth,
        notes=lambda one: (
            "the two training inputs have the same target; what depends on x_1 itself depends on "
            "the data weakly, and is not meant",
        ),
    )


def is_ip_bias(case: Case) -> Hypothesis:
    """The tables of IP-bias.

    Source: Hajjar, Chizat, Giraud, section 5.2.
    """
    return named(case, "ip-bias")


def _all_biases(case: Case) -> Hypothesis:
    return Hypothesis("biases in all layers", case.bias == "all", case.bias)


def _claims(case: Case) -> Iterator[Claim]:
    depth = case.depth
    found = _differences(case) if case.limits else {}

    def part(name: str) -> dict[str, Size]:
        return {name: found[name]} if name in found else {}

    for layer in range(2, depth + 1):
        yield vanishing(f"layer {layer}: h_0 at one input less that at another", part(f"h{layer}"))
    yield vanishing("f_0 at one input less that at another", part("f"))
    for layer in range(2, depth + 2):
        where = "the output" if layer > depth else f"layer {layer}"
        text = f"{where}: first update by one training input less that by another"
        stated = "tends to 0" if layer > 2 else ""
        yield vanishing(text, part(f"W{layer}"), stated)


def _differences(case: Case) -> dict[str, Size]:
    """Differences between two inputs of one network, as orders: h_0, f_0 and first updates.

    The update of layer l by the input i, over eta chi, is n^(-(2 a_l + c_l)) dh_i^l x_i^(l-1)^T;
    it is applied to the features of a third input.
    """
    row, depth = case.exponents(0), case.depth
    first, target = case.samples.inputs[0], case.samples.targets[0]
    both = Samples((first, far_query(Samples((first,), (target,)))), (target, target))
    run = case.run.replace(data=both, steps=0, batch=2, queries=[far_query(both)])
    program = run.replace(watch=("h", "x", "dh")).program
    names = ["f", *(f"h{layer}" for layer in range(2, depth + 1))]
    names += [f"W{layer}" for layer in range(2, depth + 2)]

    def more(t: Tracer) -> None:
        t.output("f", t[stepped("f", 0, 0)] - t[stepped("f", 0, 1)])
        for layer in range(2, depth + 2):
            power = 1 - 2 * row.a[layer - 1] - row.c[layer - 1]
            first, second, x = (_vector(t, layered("x", layer - 1, 0, i)) for i in (0, 1, 2))
            products = (t.inner(first, x), t.inner(second, x))
            if layer > depth:
                t.output(f"W{layer}", n**power * (products[0] - products[1]))
                continue
            t.output(f"h{layer}", t[layered("h", layer, 0, 0)] - t[layered("h", layer, 0, 1)])
            updates = [products[i] * t[layered("dh", layer, 0, i)] for i in (0, 1)]
            t.output(f"W{layer}", n**power * (updates[0] - updates[1]))

    return bounds(extend(program, more), names)


def _vector(t: Tracer, name: str) -> Vector:
    found = t[name]
    assert isinstance(found, Vector)  # features are
    return found
