"""A study in words: its title, its facts, and what its program computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpcalc.catalog.exponent_words import exponent_words
from tpcalc.catalog.losses import lookup as find_loss
from tpcalc.catalog.optimizers import lookup as find_optimizer
from tpcalc.catalog.parameterizations import Parameterization
from tpcalc.functions.numbers import Number
from tpcalc.networks.network import Architecture
from tpcalc.program.laws import LAWS
from tpcalc.results import Formula, Samples
from tpcalc.study.formulas import drawn
from tpcalc.study.notation import number, placed
from tpcalc.study.schema import Study

__all__ = ["count", "facts", "heading", "program_words", "title"]


def title(study: Study, network: Architecture, exponents: Parameterization) -> str:
    """The heading of a report."""
    steps = study.training.steps
    trained = f"{count(steps, 'step')} of training" if steps else "at initialization"
    return f"{heading(network, exponents)}, {trained}"


def heading(network: Architecture, exponents: Parameterization) -> str:
    """The network alone."""
    return f"{network.heading}, {exponents.text}"


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
    study: Study,
    network: Architecture,
    formulas: Sequence[tuple[str, Formula]],
    outputs: int,
) -> tuple[str, ...]:
    """What the program computes, a sentence for each part."""
    training = study.training
    lines = [*_starts(network), *(f"{_said(title, own)}." for title, own in formulas)]
    if training.steps:
        lines.pop()  # the formula of an update, which the optimizer says in its own words
        rule = find_optimizer(training.optimizer).rule.replace("w^l", "W[l]")
        lines += [
            f"Backward: dh[l] and dx[l] are the gradients of {'f' if outputs == 1 else 'the loss'} "
            "by h[l] and x[l], found by reverse differentiation of the forward program.",
            f"Update, {count(training.steps, 'time')}: {rule}, with eta = {training.lr:g}.",
            "Trained weights are never formed: W[l] x after t steps is its value at the start plus "
            "one multiple of a gradient for each step and sample.",
        ]
    return tuple(lines)


def _said(title: str, formula: Formula) -> str:
    """A formula with the layers that it holds for."""
    _, _, layers = title.partition(", ")
    return f"{formula.text} for {layers}" if layers else formula.text


def _starts(network: Architecture) -> Iterator[str]:
    """How parameters start: those of one law in a sentence."""
    alike: dict[tuple[str, Number], list[str]] = {}
    for family in network.smallest.families.values():
        if family.mark is not None and family.mark.trained:
            alike.setdefault((family.law, family.mark.start), []).append(placed(drawn(family)).text)
    for (law, start), names in alike.items():
        shown = ", ".join(names)
        if start == 0:
            yield f"{shown} start at 0."
        elif law == "gaussian":
            factor = "" if start == 1 else f" times {number(start).text}"
            yield f"The entries of {shown} start as independent N(0, 1) draws{factor}."
        else:
            yield f"The entries of {shown} start with the law: {LAWS[law].text}."


def count(number: int, noun: str) -> str:
    """A number of things.

    Example:
        >>> count(1, "step"), count(2, "step")
        ('1 step', '2 steps')
    """
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _batches(batch: int) -> str:
    return "one sample a step" if batch == 1 else f"batches of {batch}"
