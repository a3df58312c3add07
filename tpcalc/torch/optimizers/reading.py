"""What the table of torch optimizers is made of: how settings are read as a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tpcalc.torch.powers import Scaling
from tpcalc.training.optimizer import Optimizer

Text = tuple[
    str | Optimizer, Mapping[str, Scaling]
]  # a name of the catalogue, and its hyperparameters
SILENT = ("lr", "maximize", "foreach", "fused", "capturable", "differentiable")


class Settings:
    """The settings of a group, numbers as functions of the width; which are asked for is kept.

    Example:
        >>> settings = Settings({"eps": Scaling(0), "nesterov": True, "t0": 7})
        >>> settings.on("eps"), settings.on("nesterov"), settings.unread()
        (False, True, ['t0'])
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values, self._asked = dict(values), set(SILENT)

    def __getitem__(self, name: str) -> Any:
        self._asked.add(name)
        return self.values.get(name)

    def on(self, name: str) -> bool:
        """Whether a setting is there, and neither False nor 0."""
        value = self[name]
        return bool(value.number if isinstance(value, Scaling) else value)

    def some(self, **names: str) -> dict[str, Scaling]:
        """Hyperparameters of a text by the names of settings, those of betas b1 and b2."""
        found = {own: self[name] for own, name in names.items()}
        betas = self["betas"]
        return found if betas is None else {"b1": betas[0], "b2": betas[1], **found}

    def unread(self) -> list[str]:
        """The settings that are on, and that nothing has asked for."""
        return [name for name in self.values if name not in self._asked and self.on(name)]


@dataclass(frozen=True)
class Reading:
    """How a class of optimizers is read.

    Args:
        read: The text of a group, from its settings.
        packages: Those whose classes of that name are meant.
        late: Settings that act from the second step on, and that the text does not have.
        silent: Settings that no size depends on.
        note: What is to be said of it.
    """

    read: Callable[[Settings], Text]
    packages: tuple[str, ...] = ("torch",)
    late: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    note: str = ""


def by_rule(kind: str, rule: Optimizer, settings: tuple[str, ...]) -> Reading:
    """That of a class whose steps have a rule: of its settings those that the text has count."""

    def read(settings: Settings) -> Text:
        usual = settings.some(decay="weight_decay")
        found = {name: settings[name] or usual.get(name) for name in rule.values}
        return rule, {name: own for name, own in found.items() if isinstance(own, Scaling)}

    return Reading(read, silent=settings, note=f"{kind}: its steps are read as {rule.name}")
