"""Formulas on a page: MathML cleaned of everything that is not mathematics."""

from __future__ import annotations

import html
import re
from contextlib import suppress
from html.entities import html5
from xml.etree import ElementTree

from tpcalc.results import Formula

# What a page may hold of a formula that comes from elsewhere.
_ELEMENTS = re.compile(
    "math|mfrac|mi|mn|mo|mover|mpadded|mphantom|mroot|mrow|ms|mspace|msqrt|mstyle|msub|msubsup|msup"
    "|mtable|mtd|mtext|mtr|munder|munderover|mmultiscripts|mprescripts|none"
)
_ATTRIBUTES = re.compile(
    "accent|accentunder|columnspan|displaystyle|fence|form|largeop|linethickness|lspace|mathvariant"
    "|maxsize|minsize|movablelimits|rowspan|rspace|scriptlevel|separator|stretchy|symmetric|width"
)
_XML_ENTITIES = frozenset({"amp", "lt", "gt", "quot", "apos"})
_RAISED = frozenset({"i", "sub", "sup"})
_LONGEST = 200_000


def formula_html(formula: Formula) -> str:
    """A formula as MathML; as escaped text where it has no MathML that can be shown.

    Example:
        >>> formula_html(Formula("x^2", mathml="<msup><mi>x</mi><mn>2</mn></msup>"))
        '<math display="block"><msup><mi>x</mi><mn>2</mn></msup></math>'
        >>> formula_html(Formula("a < b"))
        '<code>a &lt; b</code>'
    """
    shown = _clean(formula.mathml) if formula.mathml else ""
    return shown or f"<code>{html.escape(formula.text)}</code>"


def formula_line(formula: Formula) -> str:
    """A formula within a line of text, of letters that are raised and lowered; or its text.

    Example:
        >>> formula_line(Formula("x^2", html="<i>x</i><sup onclick='no'>2</sup>"))
        '<i>x</i><sup>2</sup>'
    """
    if formula.html and "<!" not in formula.html and len(formula.html) < _LONGEST:
        with suppress(ElementTree.ParseError, RecursionError):
            return _raised(ElementTree.fromstring(f"<p>{formula.html}</p>"), 0)
    return html.escape(formula.text)


def _raised(element: ElementTree.Element, depth: int) -> str:
    if depth > 200:
        raise RecursionError
    inner = html.escape(element.text or "")
    for child in element:
        inner += _raised(child, depth + 1) + html.escape(child.tail or "")
    return f"<{element.tag}>{inner}</{element.tag}>" if element.tag in _RAISED else inner


def formula_markdown(formula: Formula) -> str:
    """A formula as LaTeX between dollars; as code where it has none.

    Example:
        >>> formula_markdown(Formula("x^2", latex="x^{2}")), formula_markdown(Formula("x^2"))
        ('$$x^{2}$$', '`x^2`')
    """
    latex = " ".join(formula.latex.split())
    if latex and "$" not in latex:
        return f"$${latex}$$"
    return f"`{' '.join(formula.text.split()).replace('`', chr(39))}`"


def _clean(mathml: str) -> str:
    """MathML that holds only known elements and attributes; empty if it cannot be read."""
    if "<!" in mathml or len(mathml) > _LONGEST:
        return ""  # a document type may define entities without end
    text = re.sub(r"&(\w+);", _entity, mathml)
    text = re.sub(r"<\?.*?\?>", "", text, flags=re.S)
    text = re.sub(r'\sxmlns(?::\w+)?="[^"]*"', "", text)
    try:
        root = ElementTree.fromstring(f"<mrow>{text}</mrow>")
        body = "".join(_element(child, 0) for child in root)
    except (ElementTree.ParseError, RecursionError):
        return ""
    return f'<math display="block">{body}</math>' if body else ""


def _entity(match: re.Match[str]) -> str:
    if match[1] in _XML_ENTITIES:
        return match[0]
    return html5.get(f"{match[1]};", match[0])


def _element(element: ElementTree.Element, depth: int) -> str:
    if depth > 200:
        raise RecursionError
    name = element.tag.rpartition("}")[2].rpartition(":")[2]
    children = [_element(child, depth + 1) for child in element]
    if name == "mfenced":
        return _fenced(element, children)
    if name == "semantics":
        return children[0] if children else ""
    if not _ELEMENTS.fullmatch(name):
        return ""
    content = html.escape(element.text or "", quote=False) if not children else ""
    inner = content + "".join(children)
    if name == "math":  # the outer element is written by the caller
        return f"<mrow>{inner}</mrow>"
    attributes = "".join(
        f' {key}="{html.escape(value)}"'
        for key, value in sorted(element.attrib.items())
        if _ATTRIBUTES.fullmatch(key)
    )
    return f"<{name}{attributes}>{inner}</{name}>"


def _fenced(element: ElementTree.Element, children: list[str]) -> str:
    """Browsers no longer know ``mfenced``; brackets and commas are written out."""
    opening = html.escape(element.get("open", "("))
    closing = html.escape(element.get("close", ")"))
    inner = "<mo>,</mo>".join(children)
    return f"<mrow><mo>{opening}</mo>{inner}<mo>{closing}</mo></mrow>"
