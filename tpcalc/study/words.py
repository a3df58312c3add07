"""A study in words: its title, its facts, and what its program computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpcalc.doors.numbers import count
from tpcalc.functions.notation import number
from tpcalc.functions.numbers import Number
from tpcalc.functions.spelling import notations
from tpcalc.networks.network import Architecture
from tpcalc.program.laws import LAWS
from tpcalc.results import Formula, Samples
from tpcalc.study.formulas import drawn
from tpcalc.torch.network import Module
from tpcalc.training.exponent_words import exponent_words
from tpcalc.training.training import Training


def title(run: Training) -> str:
    """The heading of a report."""
    trained = f"{count(run.steps, 'step')} of training" if run.steps else "at initialization"
    return f"{heading(run)}, {trained}"


def heading(run: Training) -> str:
    """The network alone."""
    if isinstance(run.network, Module):  # its parameters start as it says itself
        recipe = run.network.recipe
        lines = ", ".join(dict.fromkeys(recipe.lines.values()))
        return f"{run.network.heading}; {recipe.optimizer.label}{f' of {lines}' if lines else ''}"
    return f"{run.network.heading}, {run.parameterization.text}"


def facts(run: Training, data: Samples, query: str | None) -> dict[str, str]:
    """What is trained, how and on what; ``query`` is the file of its queries."""
    network, exponents, loss = run.network, run.parameterization, run.loss
    origin = data.origin[0].upper() + data.origin[1:] if data.origin == "inline" else data.origin
    made = {
        "Network": network.words[0].upper() + network.words[1:],
        "Parameterization": f"{exponents.text} ({exponents.source})",
        **exponent_words(exponents, network.hidden, run.steps, network.biased),
        "Optimizer": f"{run.optimizer.label}, learning rate {_rate(run)}",
        **({"Groups": "; ".join(map(str, run.groups))} if run.groups else {}),
        "Loss": f"{loss.name}: {loss.text}",
        "Training": f"{count(run.steps, 'step')}, {_batches(run.batch)}",
        "Data": f"{origin}: {count(data.dimension, 'feature')}, {count(data.outputs, 'output')}",
    }
    if query is not None:
        made["Queries"] = f"{count(len(run.queries), 'input')} of {query}"
    return made


def program_words(
    run: Training, formulas: Sequence[tuple[str, Formula]], outputs: int
) -> tuple[str, ...]:
    """What the program computes, a sentence for each part."""
    lines = [*_starts(run.network), *(f"{_said(title, own)}." for title, own in formulas)]
    if run.steps:
        lines.pop()  # the formula of an update, which the optimizer says in its own words
        made = "one multiple of a gradient for each step and sample"
        if run.optimizer.degree == 0:
            made = "a function of its gradients, entry by entry"
        lines += [
            f"Backward: dh[l] and dx[l] are the gradients of {'f' if outputs == 1 else 'the loss'} "
            "by h[l] and x[l], found by reverse differentiation of the forward program.",
            f"Update, {count(run.steps, 'time')}: {run.optimizer.rule}, for every entry w of a "
            "parameter of layer l with its gradient g of the mean loss of the batch; "
            f"lr = eta n^(-c_l) with eta = {_rate(run)}.",
            "Trained weights are never formed: W[l] x after t steps is its value at the start plus "
            f"{made}.",
        ]
        if run.groups:
            lines.append(
                f"Parameters with settings of their own: {'; '.join(map(str, run.groups))}."
            )
    return tuple(lines)


def _rate(run: Training) -> str:
    """The factor of the learning rate in words, with its schedule."""
    assert not callable(run.lr)  # a study has a number
    rate = f"{float(run.lr):g}"
    if run.schedule is None:
        return rate
    factors = ", ".join(f"{float(factor):.4g}" for factor in run.factors)
    schedule = run.schedule if isinstance(run.schedule, str) else f"({factors})"
    return f"{rate} times the schedule {schedule}"


def _said(title: str, formula: Formula) -> str:
    """A formula with the layers that it holds for."""
    _, _, layers = title.partition(", ")
    return f"{formula.text} for {layers}" if layers else formula.text


def _starts(network: Architecture) -> Iterator[str]:
    """How parameters start: those of one law in a sentence."""
    alike: dict[tuple[str, Number], list[str]] = {}
    for family in network.smallest.families.values():
        if family.mark is not None and family.mark.trained:
            alike.setdefault((family.law, family.mark.start), []).append(
                notations(drawn(family))[0]
            )
    for (law, start), names in alike.items():
        shown = ", ".join(names)
        if start == 0:
            yield f"{shown} start at 0."
        elif law == "gaussian":
            factor = "" if start == 1 else f" times {notations(number(start))[0]}"
            yield f"The entries of {shown} start as independent N(0, 1) draws{factor}."
        else:
            yield f"The entries of {shown} start with the law: {LAWS[law].text}."


def _batches(batch: int) -> str:
    return "one sample a step" if batch == 1 else f"batches of {batch}"
