"""Optimizers by name: one complete file for each, found by its presence in this folder."""

from __future__ import annotations

import re
from pathlib import Path

from tpcalc.doors import files
from tpcalc.errors import StudyError, UnknownName
from tpcalc.registry.registry import Registry, discover
from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer as Optimizer

REGISTRY: Registry[Optimizer] = discover(__name__, "optimizer", Optimizer)

FILES = ".opt"
LARGEST = 1 << 16  # bytes of a text, which is a few lines
_CALL = re.compile(r"([^\s()]+)\s*(?:\((.*)\))?\s*")
_HEAD = re.compile(r"\s*optimizer\s+(\S.*)")


def lookup(name: str | Optimizer) -> Optimizer:
    r"""The optimizer of a name, of a text or of a file.

    Example:
        >>> lookup("SGD").name, lookup("adam(eps=0.1 n^-1)").values["eps"]
        ('sgd', '0.1 n^-1')
        >>> lookup("optimizer slow(beta=1/2)\nm = beta m + g\nw = w - lr sign(m)").degree
        0
    """
    if isinstance(name, Optimizer):
        return name
    if not isinstance(name, str):
        raise UnknownName("optimizer", str(name), REGISTRY.names)
    if _HEAD.match(name):
        return _read(name, "its text")
    if name.strip().endswith(FILES):
        path = Path(name.strip())
        return _read(files.text(path, "optimizer file", LARGEST), str(path))
    entry, values = called(name)
    return REGISTRY[entry].with_settings(**values)


def _read(text: str, where: str) -> Optimizer:
    """An optimizer of one's own."""
    first, _, rest = text.strip().partition("\n")
    head = _HEAD.fullmatch(first)
    if head is None:
        raise StudyError(
            f"the first line is {first!r}.",
            where=where,
            hint="Write 'optimizer lion(b1=9/10, b2=99/100, decay=0)', and the update below it.",
        )
    name, values = called(head[1], where)
    return Optimizer(name, rest, "an optimizer of one's own", Source(where), values)


def called(text: str, where: str = "") -> tuple[str, dict[str, str]]:
    """A name and what stands in the brackets after it."""
    found, values = _CALL.fullmatch(text.strip()), dict[str, str]()
    if found is None:
        return text, {}
    for part in found[2].split(",") if (found[2] or "").strip() else ():
        name, _, value = (piece.strip() for piece in part.partition("="))
        if not name or not value or name in values:
            raise StudyError(
                f"{text.strip()!r} has a setting {part.strip()!r}.",
                where=where,
                hint="Each hyperparameter has a value, and one: adamw(decay=0.1, b1=0.95).",
            )
        values[name] = value
    return found[1], values
