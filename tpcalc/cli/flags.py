"""The flags of the commands: each is written once, with the key of a study that it sets."""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from tpcalc.cli.option import Flags as Flags
from tpcalc.cli.option import Option, options, taking

P = ParamSpec("P")


def _groups() -> Iterator[tuple[Option, ...]]:
    """The flags of each group; of one that is part of another with words of its own."""
    made: dict[str, tuple[Option, ...]] = {}
    read = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    for key, group in tomllib.loads(read).items():
        if "of" in group:
            words, names = group.get("help", {}), group.get("only", ())
            made[key] = tuple(
                replace(own, help=words.get(name, own.help), panel=group.get("heading", own.panel))
                for own in made[group["of"]]
                if (name := own.name[2:]) in names or not (names or name in group["without"])
            )
        else:
            made[key] = options(**group)
        yield made[key]


NETWORK, MODULE, DATA, LIMIT, SIMULATE, ASKED, RUN, DEVICE, SWEEP, *_more = _groups()
TRAINING, RATES_OPEN, MEASURE, KERNEL, INPUTS, SEED, VALUES, OF_BLOCKS = _more


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
