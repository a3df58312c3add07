"""A study in words: its title, its facts, and what its program computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpcalc.catalog.architecture import deviation, named
from tpcalc.catalog.architectures.mlp import MLP
from tpcalc.catalog.architectures.resnet import ResNet
from tpcalc.catalog.architectures.rnn import RNN
from tpcalc.catalog.exponent_words import exponent_words
from tpcalc.catalog.losses import lookup as find_loss
from tpcalc.catalog.optimizers import lookup as find_optimizer
from tpcalc.catalog.parameterizations import Exponents, Parameterization
from tpcalc.networks.network import Architecture
from tpcalc.orders import Ex
from tpcalc.results import Samples
from tpcalc.study.schema import Study

__all__ = ["count", "facts", "heading", "program_words", "title"]


def title(study: Study, network: Architecture, exponents: Parameterization) -> str:
    """The heading of a report."""
    steps = study.training.steps
    trained = f"{count(steps, 'step')} of training" if steps else "at initialization"
    return f"{heading(network, exponents)}, {trained}"


def heading(network: Architecture, exponents: Parameterization) -> str:
    """The network alone."""
    if isinstance(network, MLP):
        text = f"{named(network.act)} network of {count(network.depth, 'hidden layer')}"
    elif isinstance(network, ResNet):
        text = f"{named(network.act)} residual network of {count(network.depth, 'block')}"
    elif isinstance(network, RNN):
        text = f"{named(network.act)} recurrent network over {count(network.length, 'token')}"
    else:
        text = network.words
    return f"{text}, {exponents.text}"


def facts(
    study: Study,
    network: Architecture,
    exponents: Parameterization,
    data: Samples,
    queries: Sequence[Sequence[float]],
) -> dict[str, str]:
    """What is trained, how and on what."""
    training = study.training
    loss = find_loss(training.loss)
    origin = data.origin[0].upper() + data.origin[1:] if data.origin == "inline" else data.origin
    made = {
        "Network": network.words[0].upper() + network.words[1:],
        "Parameterization": f"{exponents.text} ({exponents.source})",
        **exponent_words(exponents, network.hidden, training.steps, network.biased),
        "Optimizer": f"{find_optimizer(training.optimizer).name}, learning rate {training.lr:g}",
        "Loss": f"{loss.name}: {loss.text}",
        "Training": f"{count(training.steps, 'step')}, {_batches(training.batch)}",
        "Data": f"{origin}: {count(data.dimension, 'feature')}, {count(data.outputs, 'output')}",
    }
    if training.query is not None:
        made["Queries"] = f"{count(len(queries), 'input')} of {training.query}"
    return made


def program_words(
    study: Study, network: Architecture, exponents: Parameterization, outputs: int
) -> tuple[str, ...]:
    """What the program computes, a sentence for each part."""
    training = study.training
    table = exponents.exponents(network.hidden)
    if isinstance(network, MLP):
        lines = _mlp(network, table)
    elif isinstance(network, ResNet):
        lines = _resnet(network, table)
    elif isinstance(network, RNN):
        lines = _rnn(network, table)
    else:
        lines = [f"Forward: {network.words}."]
    if training.steps:
        rule = find_optimizer(training.optimizer).rule.replace("w^l", "W[l]")
        lines += [
            f"Backward: dh[l] and dx[l] are the gradients of {'f' if outputs == 1 else 'the loss'} "
            "by h[l] and x[l], found by reverse differentiation of the forward program.",
            f"Update, {count(training.steps, 'time')}: {rule}, with eta = {training.lr:g}.",
            "Trained weights are never formed: W[l] x after t steps is its value at the start plus "
            "one multiple of a gradient for each step and sample.",
        ]
    return tuple(lines)


def _mlp(network: MLP, table: Exponents) -> list[str]:
    depth, bias = network.depth, network.bias
    biases = [bias != "none", *(bias in ("hidden", "all"),) * (depth - 1), bias == "all"]
    initial = network.variances == "initial"
    factors = ["" if initial else deviation(network.bias_variance)] * depth + [""]
    terms = [
        f" + {_power(-power)}{factor}b[{{}}]" if has else ""
        for has, power, factor in zip(biases, table.bias_a, factors, strict=True)
    ]
    weights = ["" if initial else deviation(v) for v in network.weight_variances]
    first = f"h[1] = {_power(-table.a[0])}{weights[0]}W[1] input{terms[0].format(1)}"
    lines = [
        _start(f"W[1], ..., W[{depth + 1}]", "of all biases b[l]" if any(biases) else "")
        + (_initial(network) if initial else ""),
        f"Forward: {first}, {_features(network.act, network.norm, 'l')}.",
    ]
    lines += [
        f"{which}h[{layer}] = {_power(-a)}{weight}W[{layer}] x[{below}]{term.format(layer)}."
        for which, layer, below, a, weight, term in _hidden(depth, table.a, weights, terms)
    ]
    last = terms[-1].format(depth + 1)
    return [*lines, f"Output: f = {_power(-table.a[-1])}W[{depth + 1}] x[{depth}]{last}."]


def _resnet(network: ResNet, table: Exponents) -> list[str]:
    depth = network.depth
    last = depth + 2
    bias = f" + {{}}{deviation(network.bias_variance)}b[{{}}]" if network.bias_variance else ""

    def block(powers: tuple[Ex, Ex], layer: str, below: str) -> str:
        own = f"{_power(-powers[0])}{deviation(network.weight_variance)}W[{layer}] x[{below}]"
        added = own + bias.format(_power(-powers[1]), layer)
        return f"h[{layer}] = h[{below}] + {depth}^(-{network.alpha}) ({added})"

    blocks = list(zip(table.a[1:-1], table.bias_a[1:-1], strict=True))
    lines = [
        _start(f"W[1], ..., W[{last}]", "of all biases b[l]" if network.bias_variance else ""),
        f"Forward: h[1] = {_power(-table.a[0])}W[1] input, "
        f"{_features(network.act, network.norm, 'l')} for l = 1, ..., {depth}.",
    ]
    if len(set(blocks)) == 1:
        lines.append(f"For l = 1, ..., {depth}: {block(blocks[0], 'l+1', 'l')}.")
    else:
        lines += [f"{block(own, str(k + 2), str(k + 1))}." for k, own in enumerate(blocks)]
    return [*lines, f"Output: f = {_power(-table.a[-1])}W[{last}] h[{last - 1}]."]


def _rnn(network: RNN, table: Exponents) -> list[str]:
    bias = f" + {_power(-table.bias_a[0])}{deviation(network.bias_variance)}b"
    state = (
        f"h[s] = {_power(-table.a[1])}{deviation(network.weight_variance)}W x[s-1] + "
        f"{_power(-table.a[0])}{deviation(network.input_variance)}U input[s]"
        + bias
        * bool(network.bias_variance)
    )
    every = network.outputs == "all"
    read = f"{_power(-table.a[-1])}v.x[{'s' if every else network.length}]"
    return [
        _start("U, W and v", "of the bias b" if network.bias_variance else ""),
        f"Forward, for the tokens s = 1, ..., {network.length}: {state}, "
        f"{_features(network.act, 'none', 's')}, x[0] = 0.",
        f"Output: {'f[s]' if every else 'f'} = {read}.",
    ]


def _start(weights: str, biases: str) -> str:
    also = f" and {biases}" if biases else ""
    return f"All entries of the weights {weights}{also} start as independent N(0, 1) draws."


def _initial(network: MLP) -> str:
    """The variances that only the start has."""
    weights = ", ".join(map(str, dict.fromkeys(network.weight_variances)))
    biases = f", their biases {network.bias_variance}" if network.bias_variance else ""
    return f" Those of the hidden layers have the variance {weights}{biases} instead of 1."


def _features(act: Any, norm: str, index: str) -> str:
    name = named(act)
    if norm == "none":
        return f"x[{index}] = {name}(h[{index}])"
    return (
        f"hhat[{index}] = (h[{index}] - its mean over coordinates) / its standard deviation, "
        f"x[{index}] = {name}(hhat[{index}])"
    )


def _hidden(
    depth: int, a: Sequence[Ex], weights: Sequence[str], terms: Sequence[str]
) -> list[tuple[str, str, str, Ex, str, str]]:
    """Hidden layers 2..L in one formula if they are written alike, else one by one."""
    alike = len(set(zip(a[1:-1], weights[1:], terms[1:-1], strict=True))) == 1
    if alike and depth > 2:
        return [(f"For l = 2, ..., {depth}: ", "l", "l-1", a[1], weights[1], terms[1])]
    return [
        ("", str(layer), str(layer - 1), a[layer - 1], weights[layer - 1], terms[layer - 1])
        for layer in range(2, depth + 1)
    ]


def count(number: int, noun: str) -> str:
    """A number of things.

    Example:
        >>> count(1, "step"), count(2, "step")
        ('1 step', '2 steps')
    """
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _batches(batch: int) -> str:
    return "one sample a step" if batch == 1 else f"batches of {batch}"


def _power(power: Ex) -> str:
    text = str(power)
    return "" if text == "0" else f"n^({text}) "
