"""Optimizers by name: one complete file for each, found by its presence in this folder."""

from __future__ import annotations

import re

from tpcalc.catalog.optimizer import Optimizer
from tpcalc.catalog.registry import Registry, discover
from tpcalc.errors import StudyError

__all__ = ["REGISTRY", "Optimizer", "lookup"]

REGISTRY: Registry[Optimizer] = discover(__name__, "optimizer", Optimizer)
_CALL = re.compile(r"\s*([^()]+?)\s*\((.*)\)\s*")


def lookup(name: str | Optimizer) -> Optimizer:
    """The optimizer of a name.

    Args:
        name: Its name, with hyperparameters in brackets: ``"adamw(decay=0.1, eps=n^-1)"``; an
            optimizer is returned as it is.

    Raises:
        UnknownName: There is no such optimizer, or it has no such hyperparameter.
        StudyError: What stands in brackets is no hyperparameter with its value.

    Example:
        >>> lookup("SGD").name, lookup("adamw(decay=0.1)").values["decay"]
        ('sgd', '0.1')
    """
    if isinstance(name, Optimizer):
        return name
    called = _CALL.fullmatch(name) if isinstance(name, str) else None
    if called is None:
        return REGISTRY[name]
    given = [part.partition("=") for part in called[2].split(",") if part.strip()]
    names = [key.strip() for key, _, _ in given]
    if not all(value.strip() for _, _, value in given) or len(set(names)) < len(names):
        raise StudyError(
            f"{name.strip()!r}: {called[2].strip()!r} is no list of hyperparameters.",
            hint="Write each once with its value, as in 'adamw(decay=0.1, eps=n^-1)'.",
        )
    values = {key: value.strip() for key, (_, _, value) in zip(names, given, strict=True)}
    return REGISTRY[called[1]].with_settings(**values)
