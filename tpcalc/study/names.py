"""The names of the catalogue: those of a study looked up all at once, and all of them listed."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
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
from tpcalc.catalog.parameterizations import Parameterization
from tpcalc.catalog.parameterizations import lookup as find_parameterization
from tpcalc.errors import TpcalcError, UnknownName
from tpcalc.study.schema import ModelPart, Study

__all__ = ["architecture_names", "catalogue", "parameterization", "unknown_names"]


def architecture_names() -> tuple[str, ...]:
    """The architectures of the catalogue: one file each."""
    return tuple(sorted(info.name for info in pkgutil.iter_modules(architectures.__path__)))


def parameterization(model: ModelPart) -> Parameterization:
    """The parameterization of a study, with its parameter p where one is given.

    Raises:
        UnknownName: No such parameterization, or it has no p.
        StudyError: Its parameters make no sense.
    """
    if model.p is None:
        return find_parameterization(model.param)
    p = int(model.p) if model.p.is_integer() else model.p
    return find_parameterization(model.param, p=p)


def unknown_names(study: Study) -> Iterator[tuple[str, str]]:
    """The key and the problem of every name that the catalogue does not have.

    Args:
        study: A study whose types and ranges are right.
    """
    model, training = study.model, study.training
    checks: list[tuple[str, Callable[[], object]]] = [
        ("model.architecture", lambda: _architecture(model.architecture)),
        ("model.act", lambda: find_activation(model.act)),
        ("model.param", lambda: find_parameterization(model.param)),
        ("model.p", lambda: parameterization(model)),
        ("training.optimizer", lambda: find_optimizer(training.optimizer)),
        ("training.loss", lambda: find_loss(training.loss)),
    ]
    failed: set[str] = set()
    for key, check in checks:
        if key == "model.p" and (model.p is None or "model.param" in failed):
            continue
        try:
            check()
        except TpcalcError as error:
            failed.add(key)
            yield key, " ".join(part for part in (error.message, error.hint) if part)


def _architecture(name: str) -> None:
    if name not in architecture_names():
        raise UnknownName("architecture", name, architecture_names())


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
