"""Docstrings of functions that are asked alike: what is common to them is said by one of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import Signature, cleandoc, signature
from textwrap import TextWrapper
from typing import Any, TypeVar

Told = TypeVar("Told", bound=Callable[..., Any])
SECTION = re.compile(r"^(Args|Returns|Raises|Source|Example):", re.M)
ENTRY = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.M)
WRAP = TextWrapper(96, subsequent_indent=" " * 8, break_on_hyphens=False)


def assembled(own: str | None, common: str | None, takes: Signature) -> str:
    r"""A docstring, with what another says of the same arguments, of the answer and of errors.

    Example:
        >>> print(assembled("Half.\n\nReturns:\n    x / 2.", "?\nArgs:\n    x: A number.",
        ...                 signature(lambda x: x)))
        Half.
        <BLANKLINE>
        Args:
            x: A number.
        <BLANKLINE>
        Returns:
            x / 2.
    """
    (_, *theirs), (head, *mine) = (SECTION.split(cleandoc(text or "")) for text in (common, own))
    texts = [dict(zip(found[::2], found[1::2], strict=True)) for found in (theirs, mine)]
    told = {title: "" for title in ("Args", "Returns", "Raises")} | texts[1]
    told["Returns"] = told["Returns"] or texts[0].get("Returns", "")
    for title in ("Args", "Raises"):
        shared, more = (dict(ENTRY.findall(text.get(title, ""))) for text in texts)
        names = takes.parameters if title == "Args" else {**shared, **more}
        known = {**shared, **more}
        lines = (f"    {name}: {' '.join(known[name].split())}" for name in names if name in known)
        told[title] = "".join(f"\n{WRAP.fill(line)}" for line in lines)
        told[title] += "\n\n" if told[title] else ""
    return head + "".join(f"{title}:{text}" for title, text in told.items() if text)


def like(other: Callable[..., Any]) -> Callable[[Told], Told]:
    """Say of a function what another says of the same arguments, where it does not itself."""

    def tell(function: Told) -> Told:
        function.__doc__ = assembled(function.__doc__, other.__doc__, signature(function))
        return function

    return tell


def named_after(made: Any, answer: Any, takes: Signature, common: str | None) -> Any:
    """A function that is made of another, under its name, as what it says that it takes."""
    for name in ("__module__", "__name__", "__qualname__"):
        setattr(made, name, getattr(answer, name))
    made.__doc__, made.__signature__ = assembled(answer.__doc__, common, takes), takes
    kinds = {name: own.annotation for name, own in takes.parameters.items()}
    made.__annotations__ = {**kinds, "return": takes.return_annotation}
    return made
