"""Classes of torch optimizers, each with the text of the catalogue that its steps are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from tpcalc.errors import UsageError
from tpcalc.torch.optimizers.reading import Reading, Settings, Text
from tpcalc.torch.powers import Scaling

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
