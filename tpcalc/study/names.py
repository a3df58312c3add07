"""The names of the catalogue, by kind: looking them up, and listing all of them."""

from __future__ import annotations

from typing import Any

from tpcalc.catalog.activations import REGISTRY as ACTIVATIONS
from tpcalc.catalog.activations import lookup as find_activation
from tpcalc.catalog.architectures import REGISTRY as ARCHITECTURES
from tpcalc.catalog.architectures import lookup as find_architecture
from tpcalc.catalog.losses import REGISTRY as LOSSES
from tpcalc.catalog.losses import lookup as find_loss
from tpcalc.catalog.optimizers import REGISTRY as OPTIMIZERS
from tpcalc.catalog.optimizers import lookup as find_optimizer
from tpcalc.catalog.parameterizations import REGISTRY as PARAMETERIZATIONS
from tpcalc.catalog.parameterizations import lookup as find_parameterization

__all__ = [
    "architecture_names",
    "catalogue",
    "find_activation",
    "find_architecture",
    "find_loss",
    "find_optimizer",
    "find_parameterization",
]


def architecture_names() -> tuple[str, ...]:
    """The architectures of the catalogue, in the order of their names."""
    return tuple(ARCHITECTURES)


def catalogue() -> dict[str, list[dict[str, Any]]]:
    """Every entry of the catalogue by kind: name, aliases, text, parameters, source."""
    return {
        "activations": [_listed(name, entry) for name, entry in ACTIVATIONS.items()],
        "architectures": [_listed(name, entry) for name, entry in ARCHITECTURES.items()],
        "parameterizations": [_listed(name, entry) for name, entry in PARAMETERIZATIONS.items()],
        "optimizers": [_listed(name, entry) for name, entry in OPTIMIZERS.items()],
        "losses": [_listed(name, entry) for name, entry in LOSSES.items()],
    }


def _listed(name: str, entry: Any) -> dict[str, Any]:
    parameters = getattr(entry, "parameters", ())
    return {
        "name": name,
        "aliases": list(getattr(entry, "aliases", ())),
        "text": entry.text,
        "parameters": [getattr(parameter, "name", parameter) for parameter in parameters],
        "source": str(entry.source),
    }
