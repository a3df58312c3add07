"""The names of the catalogue, by kind: looking them up, and listing all of them."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import Any

from tpcalc.catalog import architectures
from tpcalc.catalog.activations import REGISTRY as ACTIVATIONS
from tpcalc.catalog.activations import lookup as find_activation
from tpcalc.catalog.losses import REGISTRY as LOSSES
from tpcalc.catalog.losses import lookup as find_loss
from tpcalc.catalog.optimizers import REGISTRY as OPTIMIZERS
from tpcalc.catalog.optimizers import lookup as find_optimizer
from tpcalc.catalog.parameterizations import REGISTRY as PARAMETERIZATIONS
from tpcalc.catalog.parameterizations import lookup as find_parameterization
from tpcalc.errors import UnknownName

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
    """The architectures of the catalogue: one file each."""
    return tuple(sorted(info.name for info in pkgutil.iter_modules(architectures.__path__)))


def find_architecture(name: str) -> str:
    """The architecture of a name.

    Raises:
        UnknownName: There is none.
    """
    if name not in architecture_names():
        raise UnknownName("architecture", name, architecture_names())
    return name


def catalogue() -> dict[str, list[dict[str, Any]]]:
    """Every entry of the catalogue by kind: name, aliases, text, parameters, source."""
    networks = []
    for name in architecture_names():
        module = importlib.import_module(f"{architectures.__name__}.{name}")
        networks.append(_listed(name, module.ENTRY, text=_first_line(module)))
    return {
        "activations": [_listed(name, entry) for name, entry in ACTIVATIONS.items()],
        "architectures": networks,
        "parameterizations": [_listed(name, entry) for name, entry in PARAMETERIZATIONS.items()],
        "optimizers": [_listed(name, entry) for name, entry in OPTIMIZERS.items()],
        "losses": [_listed(name, entry) for name, entry in LOSSES.items()],
    }


def _first_line(module: ModuleType) -> str:
    return (module.__doc__ or "").strip().partition("\n")[0].rstrip(".")


def _listed(name: str, entry: Any, text: str | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "aliases": list(getattr(entry, "aliases", ())),
        "text": entry.text if text is None else text,
        "parameters": [parameter.name for parameter in getattr(entry, "parameters", ())],
        "source": str(getattr(entry, "source", entry)),
    }
