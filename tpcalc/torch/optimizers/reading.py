"""What the table of torch optimizers is made of: how settings are read as a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tpcalc.errors import UsageError
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
    """How a class of optimizers is read."""

    read: Callable[[Settings], Text]  # the text of a group, from its settings
    packages: tuple[str, ...] = ("torch",)  # those whose classes of that name are meant
    # Settings that act from the second step on, and that the text does not have
    late: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()  # settings that no size depends on
    note: str = ""  # what is to be said of it


def by_rule(kind: str, rule: Optimizer, settings: tuple[str, ...]) -> Reading:
    """That of a class whose steps have a rule: of its settings those that the text has count."""

    def read(settings: Settings) -> Text:
        usual = settings.some(decay="weight_decay")
        found = {name: settings[name] or usual.get(name) for name in rule.values}
        return rule, {name: own for name, own in found.items() if isinstance(own, Scaling)}

    return Reading(read, silent=settings, note=f"{kind}: its steps are read as {rule.name}")


PLAIN = {"eps": "eps", "decay": "weight_decay"}
MOMENTUM = {"beta": "momentum", "decay": "weight_decay"}


def _adam(settings: Settings, name: str = "adam", decoupled: bool = False, **more: str) -> Text:
    """Texts of a decay inside the gradient, and, with a w, of one beside it."""
    decoupled = settings.on("decoupled_weight_decay") or decoupled
    return name + "w" * decoupled, settings.some(**PLAIN, **more)


def _sparse(settings: Settings) -> Text:
    """Its eps stands beside a root that is not yet corrected."""
    values = settings.some(eps="eps")
    eps = float(values["eps"].number) / (1 - float(values["b2"].number)) ** 0.5
    return "adam", {**values, "eps": replace(values["eps"], number=eps)}


def _sgd(settings: Settings) -> Text:
    if not (settings.on("momentum") or settings.on("weight_decay")):
        return "sgd", {}
    return "nesterov" if settings.on("nesterov") else "momentum", settings.some(**MOMENTUM)


def _rmsprop(settings: Settings) -> Text:
    values = settings.some(alpha="alpha", eps="eps")
    centered = settings.on("centered")
    if not (centered or settings.on("momentum") or settings.on("weight_decay")):
        return "rmsprop", values
    kind = "centered" if centered else "momentum"
    return f"rmsprop-{kind}", {**values, **settings.some(**MOMENTUM)}


def _adadelta(settings: Settings) -> Text:
    values = settings.some(rho="rho", decay="weight_decay")
    eps = settings["eps"]
    own = Scaling(float(eps.number) ** 0.5, eps.power / 2)
    return "adadelta", {**values, "eps": own, "floor": own}


def _adafactor(settings: Settings) -> Text:
    values = settings.some(d="d", decay="weight_decay")
    fall, (_, least) = settings["beta2_decay"], settings["eps"]
    return "adafactor", {**values, "gamma": replace(fall, number=-fall.number), "eps": least}


def _muon(settings: Settings) -> Text:
    rms = settings["adjust_lr_fn"] == "match_rms_adamw"
    return "muon-rms" if rms else "muon", settings.some(**MOMENTUM)


def _muon_or_adam(settings: Settings) -> Text:
    return _muon(settings) if settings.on("use_muon") else _adam(settings, decoupled=True)


def _adapts(settings: Settings) -> bool:
    """Whether the step of a parameter has the size of its norm: of one without decay it has not."""
    always, decays = settings.on("always_adapt"), settings.on("weight_decay")
    return always or decays


def _lamb(settings: Settings) -> Text:
    if not (settings.on("bias_correction") and settings.on("grad_averaging")):
        raise UsageError("Lamb without bias_correction or grad_averaging has no text.")
    clip = {"clip": "max_grad_norm"} if settings.on("max_grad_norm") else {}
    return "lamb" if _adapts(settings) else "adam", settings.some(**PLAIN, **clip)


def _lars(settings: Settings) -> Text:
    adapts = _adapts(settings)
    return ("lars", settings.some(**MOMENTUM, trust="trust_coeff")) if adapts else _sgd(settings)


def _lbfgs(settings: Settings) -> Text:
    raise UsageError(
        "LBFGS searches along a line with a closure: its step is no function of a gradient.",
        hint="Give the optimizer of the training that is meant, or a text.",
    )


LARGEST = "Adamax: read as Adam, whose first step is the same"
BOUND = "Adafactor: a rate above 1/sqrt(t) is cut to that, which is left out"
FIRST = "RAdam: its first steps are gradient descent with momentum, Adam comes after"
POLAR = "Muon: its Newton-Schulz steps stand for the polar factor that they come near to"
SPARSE = (
    "SparseAdam: Adam, with the eps of the first step; rows without a gradient stay as they are"
)
NEWTON = ("nesterov", "ns_steps", "ns_coefficients", "eps")
CLASSES: Mapping[str, Reading] = {
    "SGD": Reading(_sgd, late=("dampening",)),
    "Adam": Reading(_adam, late=("amsgrad",)),
    "AdamW": Reading(partial(_adam, decoupled=True), late=("amsgrad",)),
    "NAdam": Reading(partial(_adam, name="nadam", psi="momentum_decay")),
    "RAdam": Reading(partial(_adam, name="radam"), note=FIRST),
    "Adamax": Reading(_adam, note=LARGEST),
    "SparseAdam": Reading(_sparse, note=SPARSE),
    "RMSprop": Reading(_rmsprop),
    "Adagrad": Reading(lambda settings: ("adagrad", settings.some(**PLAIN)), late=("lr_decay",)),
    "Adadelta": Reading(_adadelta),
    "Adafactor": Reading(_adafactor, note=BOUND),
    "ASGD": Reading(
        lambda settings: ("momentum", {"beta": Scaling(0), "decay": settings["lambd"]}),
        late=("alpha", "t0"),
    ),
    "Rprop": Reading(lambda settings: ("signsgd", {}), late=("etas", "step_sizes")),
    "LBFGS": Reading(_lbfgs),
    "Muon": Reading(_muon, ("torch", "muon"), silent=NEWTON, note=POLAR),
    "SingleDeviceMuon": Reading(_muon, ("muon",), note=POLAR),
    "MuonWithAuxAdam": Reading(_muon_or_adam, ("muon",), note=POLAR),
    "SingleDeviceMuonWithAuxAdam": Reading(_muon_or_adam, ("muon",), note=POLAR),
    "Lion": Reading(
        lambda settings: ("lion", settings.some(decay="weight_decay")), ("lion_pytorch", "timm")
    ),
    "Lamb": Reading(_lamb, ("timm",), silent=("max_lr_snapshot",)),
    "Lars": Reading(_lars, ("timm",), silent=("eps", "trust_coeff")),
}
