"""The names of the catalogue, by kind: looking them up, and listing all of them."""

from __future__ import annotations

from typing import Any

from tpcalc.activations import entries as activations
from tpcalc.errors import StudyError
from tpcalc.networks import architectures
from tpcalc.networks.architecture import ArchitectureFamily
from tpcalc.networks.own import Own
from tpcalc.sources import Source
from tpcalc.study.program_file import load_named, split_model
from tpcalc.training import losses, optimizers, parameterizations, schedules


def find_architecture(name: str) -> ArchitectureFamily:
    """The networks of a name: of the catalogue, or one in a Python file.

    Example:
        >>> find_architecture("mlp").name
        'mlp'
    """
    in_python = split_model(name)
    if in_python is None:
        return architectures.lookup(name)
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
    return tuple(architectures.REGISTRY)


def catalogue() -> dict[str, list[dict[str, Any]]]:
    """Every entry of the catalogue by kind: name, aliases, text, parameters, source."""
    kinds = {
        "activations": activations,
        "architectures": architectures,
        "parameterizations": parameterizations,
        "optimizers": optimizers,
        "schedules": schedules,
        "losses": losses,
    }
    return {
        kind: [_listed(name, entry) for name, entry in module.REGISTRY.items()]
        for kind, module in kinds.items()
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
