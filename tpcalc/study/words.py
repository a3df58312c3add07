"""A study in words: its title, its facts, and what its program computes."""

from __future__ import annotations

from collections.abc import Sequence

from tpcalc.catalog.architectures.mlp import MLP
from tpcalc.catalog.losses import lookup as find_loss
from tpcalc.catalog.optimizers import lookup as find_optimizer
from tpcalc.catalog.parameterizations import Parameterization
from tpcalc.orders import Ex
from tpcalc.results import Samples
from tpcalc.study.schema import Study

__all__ = ["count", "facts", "heading", "program_words", "title"]


def title(study: Study, exponents: Parameterization) -> str:
    """The heading of a report."""
    steps = study.training.steps
    trained = f"{count(steps, 'step')} of training" if steps else "at initialization"
    return f"{heading(study, exponents)}, {trained}"


def heading(study: Study, exponents: Parameterization) -> str:
    """The network alone."""
    layers = count(study.model.depth, "hidden layer")
    return f"{study.model.act} network of {layers}, {exponents.text}"


def facts(
    study: Study,
    network: MLP,
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
        "Powers of the weights": _row("a", exponents.exponents(study.model.depth).a),
        "Powers of the learning rates": _rates(study, exponents),
        "Optimizer": f"{find_optimizer(training.optimizer).name}, learning rate {training.lr:g}",
        "Loss": f"{loss.name}: {loss.text}",
        "Training": f"{count(training.steps, 'step')}, {_batches(training.batch)}",
        "Data": f"{origin}: {count(data.dimension, 'feature')}, {count(data.outputs, 'output')}",
    }
    if training.query is not None:
        made["Queries"] = f"{count(len(queries), 'input')} of {training.query}"
    return made


def program_words(study: Study, exponents: Parameterization, outputs: int) -> tuple[str, ...]:
    """What the program computes, a sentence for each part."""
    model, training = study.model, study.training
    depth = model.depth
    table = exponents.exponents(depth)
    biases = [
        model.bias == "all" or (model.bias == "first" and layer == 0) for layer in range(depth + 1)
    ]
    terms = [
        f" + {_power(-power)}b[{{}}]" if has else ""
        for has, power in zip(biases, table.bias_a, strict=True)
    ]
    also = " and of all biases b[l]" if any(biases) else ""
    lines = [
        f"All entries of the weights W[1], ..., W[{depth + 1}]{also} start as independent "
        "N(0, 1) draws.",
        f"Forward: h[1] = {_power(-table.a[0])}W[1] input{terms[0].format(1)}, "
        f"x[l] = {model.act}(h[l]).",
    ]
    lines += [
        f"{which}h[{layer}] = {_power(-a)}W[{layer}] x[{below}]{term.format(layer)}."
        for which, layer, below, a, term in _hidden(depth, table.a, terms)
    ]
    lines.append(
        f"Output: f = {_power(-table.a[-1])}W[{depth + 1}] x[{depth}]{terms[-1].format(depth + 1)}."
    )
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


def _hidden(
    depth: int, a: Sequence[Ex], terms: Sequence[str]
) -> list[tuple[str, str, str, Ex, str]]:
    """Hidden layers 2..L in one formula if they have the same powers, else one by one."""
    alike = len(set(zip(a[1:-1], terms[1:-1], strict=True))) == 1
    if alike and depth > 2:
        return [(f"For l = 2, ..., {depth}: ", "l", "l-1", a[1], terms[1])]
    return [
        ("", str(layer), str(layer - 1), a[layer - 1], terms[layer - 1])
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


def _row(name: str, powers: Sequence[Ex]) -> str:
    return f"{name} = ({', '.join(map(str, powers))})"


def _rates(study: Study, exponents: Parameterization) -> str:
    depth, steps = study.model.depth, study.training.steps
    rows = [exponents.exponents(depth, step).c for step in range(max(steps, 1))]
    if all(row == rows[0] for row in rows):
        return _row("c", rows[0])
    parts = [f"{_row('c', rows[0])} at t = 0"]
    for step in range(1, len(rows)):
        if rows[step] != rows[step - 1]:
            parts.append(f"{_row('c', rows[step])} from t = {step}")
    return "; ".join(parts)


def _power(power: Ex) -> str:
    text = str(power)
    return "" if text == "0" else f"n^({text}) "
