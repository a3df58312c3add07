"""Parameterizations by name: the files of this folder, one for each family of them."""

from __future__ import annotations

from tpcalc.errors import StudyError
from tpcalc.registry.registry import Registry, discover
from tpcalc.training.parameterization import Exponents as Exponents
from tpcalc.training.parameterization import Parameterization as Parameterization
from tpcalc.training.parameterization import ParameterizationFamily

REGISTRY: Registry[ParameterizationFamily] = discover(
    __name__, "parameterization", ParameterizationFamily
)


def lookup(text: str | Parameterization, **parameters: object) -> Parameterization:
    """The parameterization that a text names.

    Example:
        >>> lookup("naive_ip").name, lookup("ip-llr", p=2).text
        ('naive-ip', 'ip-llr(p=2)')
    """
    if isinstance(text, Parameterization):
        if parameters:
            raise StudyError(
                f"{text.text} has its parameters already.",
                hint="Give a name and parameters, or a parameterization alone.",
            )
        return text
    if not isinstance(text, str):
        raise StudyError(
            f"a parameterization is named by a text, not by {text!r}.",
            hint="Write 'mup' or 'ntk'.",
        )
    name, colon, given = text.partition(":")
    ordered = [part.strip() for part in given.split(";")] if colon else []
    if "" in ordered:
        raise StudyError(f"{text.strip()!r} leaves a parameter out.")
    return REGISTRY[name](*ordered, **parameters)
