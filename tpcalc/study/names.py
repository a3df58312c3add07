"""The names of the catalogue, by kind: looking them up, and listing all of them."""

from __future__ import annotations

from typing import Any

from tpcalc.activations.entries import REGISTRY as ACTIVATIONS
from tpcalc.errors import StudyError
from tpcalc.networks.architecture import ArchitectureFamily
from tpcalc.networks.architectures import REGISTRY as ARCHITECTURES
from tpcalc.networks.architectures import lookup
from tpcalc.networks.own import Own
from tpcalc.sources import Source
from tpcalc.study.program_file import load_named, split_model
from tpcalc.training.losses import REGISTRY as LOSSES
from tpcalc.training.optimizers import REGISTRY as OPTIMIZERS
from tpcalc.training.parameterizations import REGISTRY as PARAMETERIZATIONS
from tpcalc.training.schedules import REGISTRY as SCHEDULES


def find_architecture(name: str) -> ArchitectureFamily:
    """The networks of a name: of the catalogue, or one in a Python file.

    Example:
        >>> find_architecture("mlp").name
        'mlp'
    """
    in_python = split_model(name)
    if in_python is None:
        return lookup(name)
    title, found = load_named(*in_python)
    if not isinstance(found, Own):
        raise StudyError(
            f"{title} is no network.",
            where=in_python[0],
            hint="Put @tp.network above a function net(t, x), or inherit from tp.Network.",
        )
    return ArchitectureFamily(
        name, found.with_, found.words, Source(in_python[0], title), own=found.takes or ()
    )


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
        "schedules": [_listed(name, entry) for name, entry in SCHEDULES.items()],
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
