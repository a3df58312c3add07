"""PyTorch modules in Python files: ``file.py:make`` and what it reads, as training runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import TpcalcError, UsageError
from tpcalc.results import Samples
from tpcalc.study.program_file import load_function, load_module, split_model, user_errors
from tpcalc.study.schema import ModulePart
from tpcalc.torch import samples, training
from tpcalc.torch.building import maker
from tpcalc.torch.numbers import rows
from tpcalc.training.generic import generic
from tpcalc.training.training import Training

_ORIGIN = "the inputs it is read with, and generic targets (your own: --data FILE.csv)"
_WIDTH = "--width says which argument is the width, and --set NAME=VALUE gives others."


def module_run(part: ModulePart, data: Samples | None, settings: Mapping[str, Any]) -> Training:
    """The training run of the module of a study."""
    assert part.make is not None
    path, name = split_model(part.make) or (part.make, None)
    load_torch()  # before the user's file says that it is missing
    _, make = load_module(path, name)
    try:
        called, title = maker(make, part.width, part.set)
    except UsageError as error:
        raise UsageError(error.message, where=path, hint=_WIDTH) from error
    taken: list[str] = []

    def made(n: int) -> Any:
        module = called(n)
        taken[:] = _arguments(module)
        return module

    made.__name__ = title
    given = dict(settings)
    if "optimizer" in given:
        given["optimizer"] = _optimizer(given["optimizer"])
    with user_errors(Path(path)):
        try:
            return training(
                made,
                lambda n: _examples(part, taken, n),
                init=part.init,
                output=part.output,
                clip=part.clip,
                data=data,
                **given,
            )
        except TpcalcError as error:
            if error.where is not None:
                raise
            flag = error  # no line of the file is to blame
    raise flag


def own_data(part: ModulePart, run: Training) -> Samples:
    """The inputs that a module was read with, with generic targets of one output each."""
    module: Any = run.network
    if not module.inputs:
        raise UsageError(
            "--input: all inputs grow with the width, and data are finite.",
            hint="tpcalc check, solve and orders answer without data.",
        )
    width = module.graph.widths[0]
    inputs = _examples(part, _arguments(module.family.modules[width]), width)
    found = rows(module, inputs, width)
    targets = module.targets(found.shape[1] // module.tokens)
    made = generic(run.loss, len(found), outputs=targets).targets
    return replace(samples(module, inputs, made), origin=_ORIGIN)


def _arguments(module: Any) -> list[str]:
    """The names that its forward pass takes."""
    return [*signature(module.forward).parameters] if hasattr(module, "forward") else []


def _examples(part: ModulePart, taken: Sequence[str], n: int) -> Any:
    """Inputs of a module of a width: by name, or in their order where it has no such names.

    They are the same draws at all widths, where they are finite.
    """
    found = {name: _tensor(text, n) for name, text in part.input.items()}
    if found.keys() <= set(taken):
        return {name: found[name] for name in taken if name in found}
    return tuple(found.values())


def _tensor(text: str, n: int) -> Any:
    """Normal numbers, or whole ones below a bound."""
    torch = load_torch()
    sizes, _, vocab = text.partition(":vocab=")
    shape = [n if size == "n" else int(size) for size in sizes.split("x")]
    seeded = torch.Generator().manual_seed(0)
    if vocab:
        return torch.randint(int(vocab), shape, generator=seeded)
    return torch.randn(shape, generator=seeded)


def _optimizer(text: str) -> Any:
    """A function of a file, or the text of an optimizer as it is."""
    place = split_model(text)
    return text if place is None else load_function(*place)[1]
