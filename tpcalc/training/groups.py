"""Groups of parameters that are trained with settings of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tpcalc import checks
from tpcalc.doors.numbers import exact
from tpcalc.errors import StudyError, UsageError
from tpcalc.exponents import Ex, as_ex
from tpcalc.functions.numbers import Number
from tpcalc.program.family import Mark
from tpcalc.training.optimizer import Optimizer
from tpcalc.training.optimizers import lookup as find_optimizer
from tpcalc.training.parameterization import exponent

WRITTEN = "Groups are written as {'bias': {'lr': 0}, 'blocks.*.up': {'power': '-1/2'}}."
Groups = Mapping[str, Mapping[str, Any]]
"""Settings by pattern: ``{"bias": {"lr": 0}, "blocks.*.up": {"power": "-1/2"}}``."""


@dataclass(frozen=True)
class Group:
    """Settings of the parameters that a pattern fits: a role, the name of a group, or labels."""

    pattern: str
    settings: tuple[tuple[str, Any], ...]

    def __post_init__(self) -> None:
        if not self.pattern.strip():
            raise UsageError(
                "the pattern of a group is empty, and says of no parameters that they are meant.",
                hint="Write a role (hidden, bias, ...), the name of a group, a label or a glob.",
            )
        checks.real(dict(self.settings).get("lr", 1), f"lr of the group {self.pattern!r}", least=0)

    def __str__(self) -> str:
        """The text that the command line takes."""
        return f"{self.pattern}: {' '.join(f'{k}={_shown(value)}' for k, value in self.settings)}"

    def fits(self, mark: Mark) -> bool:
        """Whether the settings are those of a parameter."""
        named = self.pattern in (mark.role, mark.group)
        return named or fnmatchcase(mark.label, self.pattern)


@dataclass(frozen=True)
class Own:
    """What a parameter has of its own: factor and power of n of its rate, and its optimizer."""

    lr: Number
    power: Ex
    optimizer: Optimizer


def own(groups: Sequence[Group], mark: Mark, optimizer: Optimizer) -> Own:
    """What a parameter has of its own, from all groups that fit it."""
    settings: dict[str, tuple[str, Any]] = {}
    for group in groups:
        for name, value in group.settings if group.fits(mark) else ():
            other, before = settings.setdefault(name, (group.pattern, value))
            if before != value:
                raise UsageError(
                    f"the groups {other!r} and {group.pattern!r} both have the parameter "
                    f"{mark.label} ({mark.role}), with {name} = {_shown(before)} and "
                    f"{_shown(value)}.",
                    hint="Write patterns of which one fits it, or the same number in both.",
                )
    values = {name: value for name, (_, value) in settings.items()}
    lr, power = values.pop("lr", 1), values.pop("power", as_ex(0))
    # An optimizer of hidden matrices takes others only where a group names it for them.
    if optimizer.others and mark.role != "hidden":
        optimizer = find_optimizer(optimizer.others)
    return Own(lr, power, values.pop("optimizer", optimizer).with_settings(**values))


def read_groups(groups: Groups | Sequence[Group], marks: Sequence[Mark]) -> tuple[Group, ...]:
    """Groups with exact numbers, all of which have parameters."""
    named = isinstance(groups, Mapping)
    given: Any = groups if named else checks.sequence(groups, "groups", hint=WRITTEN)
    pairs = given.items() if named else ((one, one) for one in given)
    found = tuple(own if isinstance(own, Group) else _group(name, own) for name, own in pairs)
    for group in found:
        if not any(map(group.fits, marks)):
            labels, roles, names = (
                ", ".join(filter(None, dict.fromkeys(found)))
                for found in zip(*((m.label, m.role, m.group) for m in marks), strict=True)
            )
            raise UsageError(
                f"the group {group.pattern!r} fits no parameter.",
                hint=f"Labels: {labels}; roles: {roles}; groups: {names or 'none'}.",
            )
    return found


def _group(pattern: Any, settings: Any) -> Group:
    keys = (pattern, *settings) if isinstance(settings, Mapping) else (None,)
    if not all(isinstance(key, str) for key in keys):
        raise UsageError(
            f"the group {pattern!r} is {settings!r}.",
            hint=WRITTEN,
        )
    of = f"of the group {pattern!r}"
    read: dict[str, Callable[[Any], Any]] = {
        "lr": lambda value: exact(value, what=f"lr {of}"),
        "power": lambda value: exponent(value, what=f"power {of}"),
        "optimizer": find_optimizer,
    }
    found = {name: read.get(name, _number)(value) for name, value in settings.items()}
    return Group(pattern, tuple(found.items()))


def _number(value: Any) -> Any:
    """A setting of an optimizer: exact where it is a number or the text of one."""
    try:
        return exact(value, what="a setting")
    except StudyError:
        return value


def _shown(value: Any) -> str:
    return value.label.replace(", ", ",") if isinstance(value, Optimizer) else str(value)
