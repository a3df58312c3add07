"""The flags of the commands: each is written once, with the key of a study that it sets."""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from tpcalc.cli.option import Flags as Flags
from tpcalc.cli.option import Option, options, taking

P = ParamSpec("P")


_GROUPS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
NETWORK, MODULE, DATA, LIMIT, SIMULATE, ASKED, RUN, DEVICE, SWEEP = (
    options(**group) for group in _GROUPS.values()
)

# What an analysis trains by itself: outputs to report are no part of it.
_TRAINED = {
    "--data": "digits, or a CSV file with header x1,...,xd,y (generic inputs by default).",
    "--steps": "Number of updates that are followed.",
}
TRAINING = tuple(
    replace(option, help=_TRAINED.get(option.name, option.help))
    for option in DATA
    if option.name not in ("--query", "--watch")
)
# Where the learning rates are what is asked for.
RATES_OPEN = tuple(option for option in TRAINING if option.name != "--lr")
MEASURE = tuple(
    replace(option, help=text, panel="With --measure")
    for option in SIMULATE
    for name, text in (("--widths", "Widths."), ("--seeds", "Networks of each width."))
    if option.name == name
)
# A kernel is in the parameterization that it is named after unless another is asked for.
KERNEL = tuple(
    replace(option, help=option.help.replace("mup by default", "ntk by default"))
    for option in NETWORK
)
# What a kernel is of: inputs alone, many of them.
_INPUTS = {
    "--data": "digits, or a CSV file with header x1,...,xd,y (digits by default).",
    "--samples": "How many inputs (100 digits, all of a file by default).",
    "--classes": "Which digits (all by default).",
    "--data-seed": "Seed of the choice of digits (0 by default).",
}
INPUTS = tuple(
    replace(option, help=_INPUTS[option.name], panel="Inputs")
    for option in DATA
    if option.name in _INPUTS
)
SEED = tuple(option for option in RUN if option.name == "--seed")
VALUES = tuple(option for option in ASKED if option.name == "--values")


def takes(
    *groups: Sequence[Option],
) -> Callable[[Callable[Concatenate[str, Flags, P], None]], Callable[..., None]]:
    """Give a command the flags of some groups; it receives those that were typed.

    The command's second parameter is replaced by one parameter for each flag, which is what typer
    reads, so that six commands share one description of each flag.
    """
    options = {option.parameter.name: option for group in groups for option in group}

    def decorate(command: Callable[Concatenate[str, Flags, P], None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        first, _, *rest = signature.parameters.values()
        keyword = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in rest]
        flags = [option.parameter for option in options.values()]
        call: Callable[..., None] = command  # all arguments come by name, from typer

        @functools.wraps(command)
        def wrapper(**values: Any) -> None:
            typed = [
                flag
                for name, option in options.items()
                if (value := values.pop(name)) not in (None, [])
                for flag in option.given(value)
            ]
            call(values.pop(first.name), typed, **values)

        return taking(wrapper, [first, *flags, *keyword])

    return decorate
