"""What matplotlib draws, made ready for a page or for a file of its own.

Drawings use stand-in colours. On a page each becomes a CSS variable, so that one SVG serves light
and dark pages; in a file each becomes the light colour of the page's style sheet, with rules beside
it for readers that prefer dark ones. Text stays text and takes the reader's typeface.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERIES = 6
"""How many colours of series the style sheet has."""

_STAND_INS = {
    "ink": "#010101",
    "muted": "#010102",
    "rule": "#010103",
    "limit": "#010104",
    "page": "#010105",
    "good": "#010106",
    "warn": "#010107",
    "bad": "#010108",
    **{f"series-{k}": f"#02020{k}" for k in range(SERIES)},
}
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', sans-serif"


_COLOURS = ContextVar("colours", default=_STAND_INS)


def colour(word: str) -> str:
    """A colour by its name: its stand-in, unless a picture is drawn for itself.

    Example:
        >>> colour("ink"), colour("7") == colour("series-1")
        ('#010101', True)
    """
    return _COLOURS.get()[f"series-{int(word) % SERIES}" if word.isdigit() else word]


def _settings() -> dict[str, Any]:
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": "tpcalc",
        "font.size": 12.0,
        "axes.edgecolor": colour("muted"),
        "axes.labelcolor": colour("ink"),
        "axes.linewidth": 0.8,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "grid.color": colour("rule"),
        "grid.linewidth": 0.8,
        "xtick.color": colour("muted"),
        "xtick.labelcolor": colour("ink"),
        "ytick.color": colour("muted"),
        "ytick.labelcolor": colour("ink"),
        "text.color": colour("ink"),
    }


@contextmanager
def canvas(width: float, height: float, *, alone: bool = False) -> Iterator[Figure]:
    """An empty figure in the settings of a report; a user's matplotlibrc has no say in it.

    Colours are stand-ins, those of a light page where a figure stands alone.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    token = _COLOURS.set(_palette()[0] if alone else _STAND_INS)
    try:
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            cast(Any, matplotlib.rcParams).update(_settings())
            ground = colour("page") if alone else "none"
            figure = Figure(figsize=(width / 72, height / 72), facecolor=ground)
            FigureCanvasSVG(figure)
            yield figure
    finally:
        _COLOURS.reset(token)


def written(figure: Figure) -> str:
    """A figure as matplotlib writes it; the same figure gives the same bytes."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    return buffer.getvalue()


def on_page(svg: str, identifier: str, words: str) -> str:
    """An ``<svg>`` element of a page, coloured by its style sheet."""
    view, body = _stripped(svg, identifier)
    root = f'<svg viewBox="{view}" role="img" aria-label="{html.escape(words)}" focusable="false">'
    return root + _recoloured(body, lambda name: f"var(--{name})")


def alone(svg: str, words: str) -> str:
    """The text of an SVG file."""
    view, body = _stripped(svg, "t")
    light, dark = _palette()
    left, top, width, height = view.split()
    used = [name for name, stand_in in _STAND_INS.items() if stand_in in body or name == "page"]
    # Inline styles yield to a rule only where it is important; programs without such rules, for
    # print say, keep the light colours.
    rules = "".join(
        f'[style*="{part}: {light[name]}"]{{{part}:{dark[name]} !important}}'
        for name in used
        for part in ("fill", "stroke")
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}" width="{width}" '
        f'height="{height}" role="img" aria-label="{html.escape(words)}" '
        f'font-family="{_FONTS}">'
        f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>"
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" '
        f'style="fill: {light["page"]}"/>' + _recoloured(body, light.__getitem__) + "\n"
    )


def _recoloured(body: str, of: Callable[[str], str]) -> str:
    for name, stand_in in _STAND_INS.items():
        body = body.replace(stand_in, of(name))
    return body


@cache
def _palette() -> tuple[dict[str, str], dict[str, str]]:
    """The colours of the style sheet, light and dark."""
    sheet = files("tpcalc.views").joinpath("templates", "page.css").read_text("utf-8")
    light, dark = sheet.split("prefers-color-scheme: dark", 1)
    found = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})\b", part)) for part in (light, dark)]
    return found[0], found[1]


def _stripped(svg: str, identifier: str) -> tuple[str, str]:
    """The box of a picture and what follows its first tag, without what no reader has a use for."""
    box = re.search(r'viewBox="([^"]+)"', svg)
    assert box is not None  # matplotlib always writes one
    body = svg[svg.index("<svg") :].split(">", 1)[1]
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", body, flags=re.S)
    # A style element inside the picture would reach the whole page.
    body = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", body, flags=re.S)
    body = body.replace("xlink:href", "href")
    body = _unique_identifiers(body, identifier)
    body = re.sub(r"font: ([\d.]+)px [^;\"]+", r"font-size: \1px", body)
    body = re.sub(r"font-family: [^;\"]+;?\s*", "", body)
    body = re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", body)
    body = re.sub(r"<[^>]+>", _shortened, body)
    body = re.sub(r"[ \n]+", " ", body)
    return box[1], re.sub(r"> <", "><", body).strip()


def _shortened(tag: re.Match[str]) -> str:
    """Coordinates to a hundredth of a unit; only within tags, never in the labels."""
    return re.sub(
        r"-?\d+\.\d{3,}",
        lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."),
        tag[0],
    )


def _unique_identifiers(svg: str, identifier: str) -> str:
    used = set(re.findall(r'href="#([^"]+)"', svg)) | set(re.findall(r"url\(#([^)]+)\)", svg))

    def keep(match: re.Match[str]) -> str:
        return f' id="{identifier}-{match[1]}"' if match[1] in used else ""

    svg = re.sub(r'\s+id="([^"]+)"', keep, svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{identifier}-\1"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{identifier}-\1)", svg)
