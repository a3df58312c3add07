"""The conditions that theorems put on a network."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import partial
from math import isfinite
from operator import attrgetter

from tpcalc.exponents import Ex, as_ex
from tpcalc.networks.architectures.mlp import MLP
from tpcalc.results import Hypothesis
from tpcalc.theorems.integrable.predicates.case import Case
from tpcalc.training.parameterizations import Exponents
from tpcalc.training.parameterizations import lookup as find_parameterization

# Sigma is 0 at 0, and has a slope there that is not.
zero_at_zero = attrgetter("activation.zero_at_zero")
slope_at_zero = attrgetter("activation.slope_at_zero")
STEPS = 8  # tables of the catalogue change after step 0 only; written ones have a row for each step
SUPPORTED = (
    "supported, but outside the smoothness assumption: for p = {} the exponents are the same, and "
    "they are derived without it"
)


def fully_connected(case: Case) -> Hypothesis:
    """The network is that of equation (2.1).

    Source: Hajjar, Chizat, Giraud, section 2.1.
    """
    found = "so it is" if case.plain else _shape(case)
    return Hypothesis("a fully connected network", case.plain, found)


def _shape(case: Case) -> str:
    if not case.run.plain:
        return "it is not trained by SGD with one rate for all steps and parameters"
    if isinstance(case.run.network, MLP):
        return "its layers are normalised"
    return f"it is {case.run.network.words}"


def one_sample(case: Case) -> Hypothesis:
    """The setting of the paper: a fully connected network of one output, one sample in a step.

    Source: Hajjar, Chizat, Giraud, section 2.1, Definition 2.2.
    """
    found = "so it is"
    layers = range(1, case.depth + 2)
    rates = [case.run.factor(layer, step) for step in range(case.run.steps) for layer in layers]
    met = False
    if not case.plain:
        found = _shape(case)
    elif case.samples.outputs != 1:
        found = f"it has {case.samples.outputs} outputs"
    elif case.run.batch != 1:
        found = f"a step takes {case.run.batch} samples"
    elif any(rate <= 0 for rate in rates):
        found = "a learning rate is not above 0"
    else:
        met = True
    text = "a fully connected network of one output, trained on one sample in a step, at eta > 0"
    return Hypothesis(text, met, found)


def continuous_loss(case: Case) -> Hypothesis:
    """Assumption 1.

    Source: Hajjar, Chizat, Giraud, Assumption 1.
    """
    text = "Assumption 1: the derivative of the loss is continuous in the output"
    return Hypothesis(text, True, f"the loss is {case.run.loss.name}")


def hidden_layers(case: Case, least: int) -> Hypothesis:
    """Enough hidden layers."""
    word = "layer" if least == 1 else "layers"
    return Hypothesis(f"at least {least} hidden {word}", case.depth >= least, f"L = {case.depth}")


def bias_at_most_first(case: Case) -> Hypothesis:
    """No biases above the first layer.

    Source: Hajjar, Chizat, Giraud, sections 3.2 and 4.
    """
    found = {
        "none": "it has none",
        "first": "it has one in the first layer",
        "hidden": "it has biases in all hidden layers",
        "all": "it has biases in all layers",
    }[case.bias]
    fine = case.bias in ("none", "first") or len(case.biased) == 1
    return Hypothesis("no biases above the first layer", fine, found)


def smooth(case: Case) -> Hypothesis:
    """Assumption 2: sigma and sigma' are pseudo-Lipschitz.

    Source: Hajjar, Chizat, Giraud, Assumption 2.
    """
    text = "Assumption 2: sigma and sigma' are there, pseudo-Lipschitz, and not identically 0"
    found = _all_of(text, case.activation.second)
    return Hypothesis(text, True, case.activation.smooth.found) if found.met else found


def homogeneous(case: Case) -> Hypothesis:
    """Assumption 3: sigma is p-homogeneous, p >= 2, not negative and larger on the right.

    Source: Hajjar, Chizat, Giraud, Assumption 3.
    """
    text = "Assumption 3: sigma is p-homogeneous with p >= 2 and alpha > beta >= 0"
    return _all_of(text, case.activation.third)


def _all_of(text: str, parts: Iterable[Hypothesis]) -> Hypothesis:
    every = tuple(parts)
    lacking = [part.found for part in every if not part.met]
    found = dict.fromkeys(lacking or (part.found for part in every))
    return Hypothesis(text, not lacking, "; ".join(found))


def first_slope(case: Case, output: float = 0.0) -> Hypothesis:
    """The derivative of the loss at the first output is not 0.

    Source: Hajjar, Chizat, Giraud, Theorems 3.2 and 4.1.
    """
    text = f"chi_0, the derivative of the loss at the limit {output:g} of f_0, is not 0"
    if case.samples.outputs != 1:
        return Hypothesis(text, False, f"there are {case.samples.outputs} outputs")
    chi = case.slope(output)
    return Hypothesis(text, isfinite(chi) and chi != 0, f"chi_0 = {chi:g}")


def first_input(case: Case) -> Hypothesis:
    """The first training input reaches the network, as it does wherever the first layer has a bias.

    Source: Hajjar, Chizat, Giraud, section 2.1, which has a bias in the first layer.
    """
    text = "xi_0 is not 0, or the first layer has a bias"
    reached = any(case.samples.inputs[0])
    found = "xi_0 is not 0" if reached else "xi_0 = 0, " + ("a bias" if case.biased else "no bias")
    return Hypothesis(text, reached or len(case.biased) > 0, found)


def non_orthogonal(case: Case) -> Hypothesis:
    """The first three training inputs are distinct, neighbours not orthogonal.

    Source: Hajjar, Chizat, Giraud, Theorem 3.2.
    """
    text = "xi_0, xi_1, xi_2 are distinct, xi_0 . xi_1 and xi_1 . xi_2 are not 0"
    rows = [case.samples.inputs[step * case.run.batch % len(case.samples)] for step in range(3)]
    found = "generic data" if case.run.data is None else "so they are"
    met = len(set(rows)) == 3
    if not met:
        found = "some are the same"
    for step in (0, 1):
        product = sum(a * b for a, b in zip(rows[step], rows[step + 1], strict=True))
        if met and product == 0:
            met, found = False, f"xi_{step} . xi_{step + 1} = 0"
    return Hypothesis(text, met, found)


def is_llr(case: Case) -> Hypothesis:
    """The tables of IP-LLR, for the degree of the activation."""
    return named(case, "ip-llr", p=degree_of(case))


def degree_of(case: Case) -> Fraction:
    """The degree p that IP-LLR is to have; 1 where the activation has none above 0."""
    degree = case.activation.degree
    return degree if degree is not None and degree > 0 else Fraction(1)


def spared(case: Case) -> bool:
    """Whether the exponents are those of Assumption 3, and only its p >= 2 is not met."""
    return case.activation.supported and not case.activation.high_degree.met


def named(case: Case, name: str, **parameters: object) -> Hypothesis:
    """The exponents are those of a parameterization of the catalogue, whatever it is called here.

    Source: Hajjar, Chizat, Giraud, section 2.2, for the tables.
    """
    wanted = find_parameterization(name, **parameters)
    text = f"the parameterization is {wanted.text}"
    for step in range(max(STEPS, case.run.steps + 1)):
        mine, theirs = (
            _entries(found.exponents(case.depth, step), case.biased)
            for found in (case.run.parameterization, wanted)
        )
        for place, value in theirs.items():
            if mine[place] != value:
                found = f"{place} is {mine[place]} at step {step}, not {value}"
                return Hypothesis(text, False, f"{case.run.parameterization.text}: {found}")
    return Hypothesis(text, True, case.run.parameterization.text)


is_naive = partial(named, name="naive-ip")  # the tables of Naive-IP


def integrable(case: Case) -> Hypothesis:
    """The scales are those of integrable parameterizations, the learning rates are free.

    Source: Hajjar, Chizat, Giraud, section 2.2.
    """
    text = "an integrable parameterization: a = (0, 1, ..., 1), centred, biases like their layer"
    row = case.exponents(0)
    wanted = [as_ex(0)] + [as_ex(1)] * case.depth
    found = ""
    for layer, value in enumerate(wanted, start=1):
        if row.a[layer - 1] != value:
            found = f"a_{layer} = {row.a[layer - 1]}"
        elif layer in case.biased and row.bias_a[layer - 1] != value:
            found = f"the bias of layer {layer} has the exponent {row.bias_a[layer - 1]}"
        if found:
            break
    else:
        if any(mean != 0 for mean in row.mean):
            found = "the initial weights are not centred"
        elif any(kept for step in (1, 2) for kept in case.exponents(step).kept):
            found = "initial weights are changed after step 0"
    return Hypothesis(text, not found, found or case.run.parameterization.text)


def _entries(row: Exponents, biased: Iterable[int]) -> dict[str, object]:
    """The entries of a table that a network feels, by name."""
    found: dict[str, object] = {}
    columns: tuple[tuple[str, Iterable[object]], ...] = (
        ("a", row.a),
        ("c", row.c),
        ("the mean of the weights of layer ", row.mean or (Fraction(0),) * len(row.a)),
        ("what is left of the initial weights of layer ", row.kept or (Ex(),) * len(row.a)),
    )
    for name, values in columns:
        joint = "" if name.endswith(" ") else "_"
        found |= {f"{name}{joint}{layer}": value for layer, value in enumerate(values, start=1)}
    for layer in biased:
        found[f"the exponent of bias {layer}"] = row.bias_a[layer - 1]
        found[f"the rate exponent of bias {layer}"] = row.bias_c[layer - 1]
    return found
