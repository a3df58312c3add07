"""Formulas of networks read back: every notation as text, and the text as numbers.

The reader knows nothing of how formulas are made. A matrix, or the weights of an input or a
readout, act on the factor that stands next to them; a sum over axes reaches to the end of its term.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import erf
from typing import Any
from xml.etree import ElementTree

import numpy as np

__all__ = ["Values", "evaluated", "from_html", "from_latex", "from_mathml"]

WIDTH, COLUMN, FEATURES = "*", "@", "in"
SIGNS = {
    r"\,": "",
    r"\leftarrow": "<-",
    r"\xi": "ξ",
    r"\eta": "η",
    r"\partial": "d",
    r"\top": "T",
    r"\sum": "sum",
}


def _raised(text: str) -> str:
    return f"^{text}" if re.fullmatch(r"[\w.#@]+", text) else f"^({text})"


def from_html(markup: str) -> str:
    """The text of a formula in HTML."""

    def of(element: ElementTree.Element) -> str:
        inner = (element.text or "") + "".join(of(one) + (one.tail or "") for one in element)
        if element.tag == "sup":
            return "^T" if inner == "⊤" else _raised(inner)
        return f"_({inner})" if element.tag == "sub" else inner

    text = of(ElementTree.fromstring(f"<p>{markup}</p>")).replace("h\u0302", "hhat")
    return (
        text.replace("−", "-")
        .replace("∑", "sum")
        .replace("√", "sqrt")
        .replace("←", "<-")
        .replace("∂", "d")
    )


FORMS = {"mfrac": "{}/{}", "msqrt": "sqrt({})", "mover": "{}hat", "mspace": " "}


def from_mathml(markup: str) -> str:
    """The text of a formula in MathML."""

    def of(element: ElementTree.Element) -> str:
        parts = [of(one) for one in element]
        match element.tag:
            case "msup":
                return parts[0] + ("^T" if parts[1] == "\u22a4" else _raised(parts[1]))
            case "msub":
                return f"{parts[0]}_({parts[1]})" if parts[0] != "c" else "c_l"
            case "munder":
                return f"sum_({parts[1]}) "
            case "mfrac" | "msqrt" | "mover" | "mspace":
                return FORMS[element.tag].format(*parts)
            case "mo" if element.text in ("=", "←", "+", ","):
                return {"=": " = ", "←": " <- ", "+": " + ", ",": ", "}[element.text]
        return "".join(parts) or element.text or ""

    text = of(ElementTree.fromstring(html.unescape(markup))).replace("∂", "d")
    # A minus between two terms has blanks, one in an exponent or in front of a term has none.
    depth, found = 0, ""
    for place, sign in enumerate(text):
        depth += (text[place - 1 : place + 1] == "^(") or (depth > 0 and sign == "(")
        depth -= depth > 0 and sign == ")"
        between = sign == "-" and not depth and re.search(r"[\w)\]']$", found)
        found += " - " if between else sign
    return found


def from_latex(latex: str) -> str:
    """The text of a formula in LaTeX."""
    tokens = re.findall(r"\\left[^a-z]|\\right[^a-z]|\\[A-Za-z]+|\\.|[^\\]", latex)

    def group() -> str:
        """One argument: a group in braces, or a sign."""
        token = tokens.pop(0)
        if token != "{":
            return spelled(token)
        found = ""
        while (token := tokens.pop(0)) != "}":
            found += spelled(token)
        return found

    def raised() -> str:
        inner = group()
        return "^T" if inner == "T" else _raised(inner)

    arguments: dict[str, Callable[[], str]] = {
        r"\mathrm": group,
        r"\text": group,
        r"\hat": lambda: group() + "hat",
        r"\frac": lambda: f"{group()}/{group()}",
        r"\sqrt": lambda: f"sqrt({group()})",
        "^": raised,
        "_": lambda: f"_({group()})",
    }

    def spelled(token: str) -> str:
        if token == "{":
            tokens.insert(0, token)
            return group()
        if re.fullmatch(r"\\(left|right)[^a-z]", token):
            return token[-1]
        made = arguments.get(token)
        return made() if made else SIGNS.get(token, token.removeprefix("\\"))

    found = ""
    while tokens:
        found += spelled(tokens.pop(0))
    return re.sub(r" +", " ", found.replace("c_(l)", "c_l")).strip()


@dataclass(frozen=True)
class Values:
    """Numbers with named axes; ``*`` are coordinates, ``@`` the columns of a matrix.

    Args:
        names: The axes.
        array: The numbers.
        acts: Whether it acts on the factor next to it.
    """

    names: tuple[str, ...]
    array: Any
    acts: bool = False

    def along(self, names: Sequence[str]) -> Any:
        """The numbers with these axes, of size 1 where there is none."""
        own = [name for name in names if name in self.names]
        array = np.transpose(self.array, [self.names.index(name) for name in own])
        return array.reshape(
            [self.array.shape[self.names.index(name)] if name in own else 1 for name in names]
        )

    def renamed(self, names: Mapping[str, str]) -> Values:
        """With other names of axes."""
        acts = self.acts and FEATURES not in names
        return Values(tuple(names.get(name, name) for name in self.names), self.array, acts)

    def summed(self, names: Sequence[str], how: Callable[..., Any] = np.sum) -> Values:
        """Summed over axes."""
        places = tuple(self.names.index(name) for name in names)
        left = tuple(name for name in self.names if name not in names)
        return Values(left, how(self.array, axis=places))


def joined(how: Callable[..., Any], *values: Values) -> Values:
    """Numbers joined entry by entry, by the names of their axes."""
    names = tuple(sorted({name for value in values for name in value.names}))
    return Values(names, how(*(value.along(names) for value in values)))


def acted(left: Values, right: Values) -> Values:
    """What a matrix, or weights of an input or a readout, make of the next factor."""
    if COLUMN in left.names:
        return joined(np.multiply, left, right.renamed({WIDTH: COLUMN})).summed([COLUMN])
    if FEATURES in left.names and FEATURES in right.names:
        return joined(np.multiply, left, right).summed([FEATURES])
    both = joined(np.multiply, left, right)
    return both.summed([WIDTH]) if WIDTH in right.names else both


def _stacked(values: Sequence[Values], axis: str) -> Values:
    names = tuple(sorted({name for value in values for name in value.names}))
    shapes = [value.along(names) for value in values]
    return Values((axis, *names), np.stack(np.broadcast_arrays(*shapes)))


def _softmax(value: Values, axis: str) -> Values:
    shifted = joined(np.subtract, value, value.summed([axis], np.max))
    powers = Values(shifted.names, np.exp(shifted.array))
    return joined(np.divide, powers, powers.summed([axis]))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "gelu": lambda z: z * (1 + np.vectorize(erf)(z / np.sqrt(2))) / 2,
    "swish": lambda z: z / (1 + np.exp(-z)),
    "step": lambda z: np.heaviside(z, 0.5),
    "sqrt": np.sqrt,
}


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, text: str, known: Mapping[str, Values]) -> None:
        self.text, self.known = text, known
        self.names = sorted(known, key=len, reverse=True)

    def taken(self, pattern: str) -> re.Match[str] | None:
        found = re.match(pattern, self.text)
        if found:
            self.text = self.text[found.end() :]
        return found

    def total(self) -> Values:
        found = joined(np.negative, self.term()) if self.taken("-") else self.term()
        while sign := self.taken(r" ([-+]) "):
            found = joined(np.add if sign[1] == "+" else np.subtract, found, self.term())
        return found

    def term(self) -> Values:
        factors = [self.factor()]
        while self.taken(r" (?=[^-+=])"):
            factors.append(self.factor())
        found = None
        while factors:
            value = factors.pop(0)
            value = acted(value, factors.pop(0)) if value.acts and factors else value
            found = value if found is None else joined(np.multiply, found, value)
        assert found is not None
        return found

    def factor(self) -> Values:
        if over := self.taken(r"sum_\(([^)]*)\) "):
            return self.term().summed(over[1].split(", "))
        found = self.atom()
        while True:
            if self.taken(r"\^T"):
                found = found.renamed({WIDTH: COLUMN, COLUMN: WIDTH})
            elif exponent := self.taken(r"\^(?:(\d+)|\(([^)]*)\))"):
                power = float(Fraction(exponent[1] or exponent[2]))
                found = Values(found.names, found.array**power, found.acts)
            elif below := self.taken(r"_\(([^)]*)\)"):
                found = self.at(found, below[1])
            else:
                return found

    def at(self, found: Values, below: str) -> Values:
        for part in below.split(", "):
            old, _, new = part.partition("=")
            if new.isdigit():
                place = found.names.index(old)
                left = tuple(name for name in found.names if name != old)
                found = Values(left, np.take(found.array, int(new), place), found.acts)
            else:
                found = found.renamed({old: new})
        return found

    def atom(self) -> Values:
        if self.taken(r"\("):
            return self.closed(self.total(), r"\)")
        if self.taken(r"\["):
            items = [self.total()]
            while self.taken(", "):
                items.append(self.total())
            self.closed(items[0], r"\]")
            axis = self.taken(r"_\((\w+'*)\)")
            assert axis, self.text
            return _stacked(items, axis[1])
        if rows := self.taken(r"softmax_\(([^)]*)\)\("):
            return _softmax(self.closed(self.total(), r"\)"), rows[1])
        if self.taken(r"mean\("):
            return self.closed(self.total(), r"\)").summed([WIDTH], np.mean)
        for name in self.names:
            if self.text.startswith(name):
                self.text = self.text[len(name) :]
                return self.known[name]
        if name := self.taken(r"([a-z]+)\("):
            inner = self.closed(self.total(), r"\)")
            return Values(inner.names, FUNCTIONS[name[1]](inner.array))
        number = self.taken(r"\d+/\d+|\d+(?:\.\d+)?")
        assert number, self.text
        return Values((), np.array(float(Fraction(number[0]))))

    def closed(self, found: Values, by: str) -> Values:
        assert self.taken(by), self.text
        return found


def evaluated(text: str, known: Mapping[str, Values]) -> Values:
    """The numbers that the right side of a formula stands for."""
    reader = _Reader(text, known)
    found = reader.total()
    assert not reader.text, reader.text
    return found
