"""A family of modules, one for every width: built at a few, with how its parameters start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import TpcalcError
from tpcalc.torch.building import FAR, Build, Make, built, compared, maker
from tpcalc.torch.inits import SEEDS, Init, declared, fitted, read, sample


@dataclass(frozen=True)
class Parameter:
    """A parameter of a family."""

    name: str  # its name in the module
    names: tuple[str, ...]  # all names that its storage has
    line: str  # the user's line that registered it: ``"model.py:7"``; empty if there is none
    trained: bool  # whether it asks for gradients
    found: Init | TpcalcError  # how it starts, or why that is not known
    shapes: Mapping[int, tuple[int, ...]]  # its shape by width
    copy: str = ""  # the parameter whose draws it starts with, if there is one

    @property
    def init(self) -> Init:
        """How it starts; an error where that is not known and was not declared."""
        if isinstance(self.found, TpcalcError):
            raise self.found
        return self.found


@dataclass(frozen=True)
class Family:
    """Modules of several widths, what all have in common, and one of the first width again."""

    name: str
    widths: tuple[int, ...]
    modules: Mapping[int, Any]
    parameters: tuple[Parameter, ...]
    notes: tuple[str, ...]
    make: Make
    again: Any


def family(
    make: Callable[..., Any],
    widths: Sequence[int] | None = None,
    *,
    width: str = "",
    options: Mapping[str, Any] | None = None,
    init: Mapping[str, Any] | None = None,
) -> Family:
    """Modules of several widths, and how their parameters start.

    Example:
        >>> made = family(lambda n: load_torch().nn.Embedding(16, n))
        >>> made.widths, [(one.name, one.init.text) for one in made.parameters]
        ((64, 128, 192, 320), [('weight', 'normal, std 1')])
    """
    notes: list[str] = []
    called, name = maker(make, width, options or {})
    builds = built(called, name, widths, notes)
    again, first = compared(called, name, builds), next(iter(builds.values()))
    notes += dict.fromkeys(first.notes)
    for key in init or {}:
        checks.one_of("parameter", key, first.tensors)

    @cache
    def far() -> dict[int, Build]:
        with load_torch()._subclasses.fake_tensor.FakeTensorMode():
            return {n: Build(called, name, n) for n in (min(builds) * factor for factor in FAR)}

    groups = {names[0]: names for names in first.groups()}
    found = {one: _tried(read, one, builds, again, far, notes) for one in groups}
    for one, names in groups.items():
        for value in [value for key, value in (init or {}).items() if key in names]:
            found[one] = declared(value, one, found[one])
    missing = [one for one, init in found.items() if init is None]
    draws: dict[str, list[Any]] = {one: [] for one in missing}
    for seed, n in product(range(SEEDS if missing else 0), builds):
        build = Build(called, name, n, seed)
        for one, means in draws.items():
            means.append(sample(build.tensors[one]))
    for one, means in draws.items():
        table = np.reshape(means, (SEEDS, len(builds), 2))
        found[one] = _tried(fitted, table, builds, one)
    copies = _copies(first, list(groups))
    notes += _notes(first, groups, copies)
    parameters = [
        Parameter(
            one,
            names,
            first.line(one),
            first.tensors[one].requires_grad,
            found[one],
            {n: tuple(build.tensors[one].shape) for n, build in builds.items()},
            copies.get(one, ""),
        )
        for one, names in groups.items()
    ]
    modules = {n: one.module for n, one in builds.items()}
    told = tuple(parameters), tuple(notes)
    return Family(name, tuple(builds), modules, *told, called, again.module)


def _tried(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except TpcalcError as error:
        return error


def _copies(build: Build, names: list[str]) -> dict[str, str]:
    """Parameters that start with draws of others, with those."""
    first: dict[tuple[Any, ...], str] = {}
    draws = {name: build.pieces(name)[0][1] for name in names}
    sources = {name: draw.source for name, draw in draws.items() if draw and draw.source}
    found = {name: first.setdefault(source, name) for name, source in sources.items()}
    return {name: other for name, other in found.items() if name != other}


def _notes(build: Build, groups: Mapping[str, tuple[str, ...]], copies: Any) -> Iterator[str]:
    """What parameters share, and what is no parameter."""
    for name, names in groups.items():
        for other in names[1:]:
            yield f"{other} ({build.line(other)}) is {name}: they are read as one parameter."
    if copies:
        told = ", ".join(f"{name} (of {other})" for name, other in copies.items())
        yield f"Copies of others at the start: {told}."
    floats = [one for one in build.module.named_buffers() if one[1].is_floating_point()]
    buffers = [name for name, one in floats if one.numel() and one.min() != one.max()]
    if buffers:
        yield f"Buffers are read as constants, as nothing trains them: {', '.join(buffers)}."
