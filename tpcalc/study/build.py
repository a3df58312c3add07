"""``Study`` -> the program of its training run, or its network alone, with words about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.data import csv, digits, inline, queries
from tpcalc.doors.numbers import count
from tpcalc.errors import StudyError
from tpcalc.functions.notation import number
from tpcalc.functions.numbers import Number
from tpcalc.functions.spelling import notations
from tpcalc.networks.network import Architecture
from tpcalc.program.laws import LAWS
from tpcalc.results import Formula, Samples
from tpcalc.study.formulas import drawn, network_formulas
from tpcalc.study.load import architecture, parameterization
from tpcalc.study.model import Model, Network
from tpcalc.study.modules import module_run, own_data
from tpcalc.study.program_file import find_architecture
from tpcalc.study.schema import Study, TrainingPart
from tpcalc.torch.network import Module
from tpcalc.training.exponent_words import exponent_words
from tpcalc.training.generic import FEATURES, generic
from tpcalc.training.losses import lookup as find_loss
from tpcalc.training.training import Routine, Training


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


# Settings of a network that are told where a study leaves them open, too.
_SHOWN = {"depth", "length", "act", "bias"}
# A few images show training at work; hundreds would make a long program.
_DIGITS = 4
PIXELS = 64  # of a digit


def build(study: Study, watch: Sequence[str] = ()) -> Model:
    """The program of a study.

    Example:
        >>> from tpcalc.study.load import study_of
        >>> model = build(study_of({"model": {"depth": 1}, "training": {"steps": 1}}))
        >>> [name for name, _ in model.program.outputs if name.startswith("f")]
        ['f[0,0]', 'f[1,0]']
    """
    part = study.training
    run = _training(study, data_of(study))
    data = run.data or own_data(study.module, run)
    run = run.replace(
        data=data,
        queries=queries(part.query, data.dimension) if part.query is not None else (),
        watch=watch if watch and "watch" not in part.model_fields_set else part.watch,
    )
    formulas = network_formulas(run.network, run.parameterization, run.steps)
    named, described = title(run), _description(study, run.network, data)
    return Model(
        program=run.blocks,
        study=study,
        title=named,
        facts=facts(run, data, part.query),
        words=program_words(run, formulas, data.outputs),
        formulas=formulas,
        input_names=_input_names(run),
        description=described,
        network=Network(run, study, named, described),
    )


def network_of(study: Study) -> Network:
    """The network of a study, for questions that train it themselves.

    Args:
        study: A checked study.

    Returns:
        The network; with data only where the study names some.

    Raises:
        StudyError: The data cannot be read, or do not fit the loss.

    Example:
        >>> from tpcalc.study.load import study_of
        >>> found = network_of(study_of({"model": {"depth": 2}, "training": {"steps": 5}}))
        >>> found.title, found.training.data, found.training.steps
        ('relu network of 2 hidden layers, mup', None, 5)
    """
    data = None
    if study.training.model_fields_set & {"data", "inputs", "samples", "classes", "seed"}:
        data = data_of(study)
    run = _training(study, data)
    return Network(run, study, heading(run), _description(study, run.network, data))


def data_of(study: Study) -> Samples | None:
    """The data of a study; where it has none a few digits, or numbers of the network's shape.

    None of a module without data: its own inputs are known when it is read.
    """
    part = study.training
    if part.data is None and part.inputs is None:
        if study.module.make is not None:
            return None
        network = architecture(study.model)
        if PIXELS % network.tokens:
            return _shaped(part, network)
    return _data(part)


def _shaped(part: TrainingPart, network: Architecture) -> Samples:
    """Numbers that are nobody's data, for a network whose tokens cannot share a digit's pixels."""
    tokens, count = network.tokens, part.samples or _DIGITS
    drawn = np.random.default_rng(part.seed).normal(size=(count, tokens * FEATURES)) / FEATURES**0.5
    return Samples(
        drawn.round(6),
        generic(part.loss, count, tokens, network.targets(FEATURES)).targets,
        f"random numbers for {tokens} tokens, seed {part.seed} (your own: --data FILE.csv "
        f"with {tokens} times d columns before the targets)",
    )


def _training(study: Study, data: Samples | None) -> Training:
    """The training run of a study; what the study leaves open is as everywhere."""
    part = study.training
    given = part.model_fields_set & Routine.__annotations__.keys()
    settings = {name: getattr(part, name) for name in given | {"steps"}}
    if study.module.make is not None:
        return module_run(study.module, data, settings)
    return Training(architecture(study.model), parameterization(study.model), data, **settings)


def _data(part: TrainingPart) -> Samples:
    # A file or numbers of one's own are all there is: nothing is chosen from them by class.
    strange = part.model_fields_set & {"classes", "seed"}
    if strange and (part.inputs is not None or part.data not in (None, "digits")):
        given = "the numbers given" if part.data is None else f"those of {part.data}"
        raise StudyError(
            f"training.{min(strange)} chooses among the digits; the data are {given}.",
            hint="Leave it out (on the command line --classes, --data-seed).",
        )
    if part.inputs is not None and part.targets is not None:
        return _first(inline(part.inputs, part.targets), part.samples)
    if part.data is None or part.data == "digits":
        # Cross-entropy wants one output for each class, also where there are two.
        onehot = find_loss(part.loss).name == "xent"
        count = _DIGITS if part.samples is None else part.samples
        encoding = "onehot" if onehot else None
        return digits(part.classes, count, part.seed, encoding=encoding)
    if Path(part.data).suffix.lower() != ".csv" and not Path(part.data).exists():
        raise StudyError(
            f"there is no data set called {part.data!r}.",
            hint="It is digits, or the path of a CSV file.",
        )
    return _first(csv(part.data), part.samples)


def _first(data: Samples, count: int | None) -> Samples:
    if count is None or count == len(data):
        return data
    checks.whole(count, "samples", most=len(data), hint=f"{data.origin} has no more.")
    return Samples(data.inputs[:count], data.targets[:count], f"{data.origin}, first {count}")


def _input_names(run: Training) -> tuple[str, ...]:
    batch = ["sample of the step"]
    if run.batch > 1:
        batch = [f"sample {index + 1} of the batch" for index in range(run.batch)]
    return (*batch, *(f"query {index + 1}" for index in range(len(run.queries))))


def _description(study: Study, network: Architecture, data: Samples | None) -> dict[str, Any]:
    part = study.model
    if study.module.make is not None:
        model = study.module.model_dump(mode="json", exclude_unset=True)
        return model | _trained(study, data)
    given = {"architecture", "param", "p", *part.model_fields_set}
    model = part.model_dump(mode="json", exclude_none=True, include=given)
    own = _SHOWN.intersection(find_architecture(part.architecture).parameters)
    model |= {name: getattr(network, name) for name in own if hasattr(network, name)}
    model = {name: model[name] for name in type(part).model_fields if name in model}
    return model | _trained(study, data)


def _trained(study: Study, data: Samples | None) -> dict[str, Any]:
    """How it is trained, and on what."""
    training = study.training.model_dump(
        mode="json",
        exclude_none=True,
        exclude={"inputs", "targets", "data", "classes", "seed"}
        | ({"groups"} if not study.training.groups else set()),
        exclude_unset=data is None,
    )
    if data is None:
        return {**training, "data": None}
    shape: dict[str, Sequence[int] | int | str] = {
        "origin": data.origin,
        "samples": len(data),
        "dimension": data.dimension,
        "outputs": data.outputs,
    }
    return {**training, "data": shape}
