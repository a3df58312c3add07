"""Panels as SVG: drawn by matplotlib, coloured by the page.

Drawings use stand-in colours. On a page each becomes a CSS variable, so that one SVG serves light
and dark pages; in a file each becomes the light colour of the page's style sheet, with rules beside
it for readers that prefer dark ones. Text stays text and takes the reader's typeface.
"""

from __future__ import annotations

import html
import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from itertools import pairwise
from operator import add, sub
from typing import TYPE_CHECKING, Any, cast

from tpcalc.views.numbers import count, plain, superscript
from tpcalc.views.panels import Figure, Panel, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


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
def canvas(width: float, height: float, *, alone: bool = False) -> Iterator[Canvas]:
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


def written(figure: Canvas) -> str:
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


MARKERS = ("o", "s", "^", "D", "v", "P")
AREA = 0.28  # how strongly an area is coloured
DASHES: dict[str, Any] = {"line": "-", "dash": (0, (5, 4))}
_LEGEND, _TITLE = 30.0, 24.0  # points below a figure, and above each of several panels


def draw(panel: Panel, identifier: str) -> str:
    """One panel as an ``<svg>`` element; the same panel gives the same bytes."""
    return on_page(_svg(panel), identifier, panel.words)


def picture(figure: Figure, words: str) -> str:
    """All panels of a figure as the text of an SVG file."""
    with _whole(figure) as whole:
        return alone(written(whole), words)


def together(figure: Figure) -> Canvas:
    """All panels of a figure beside and below each other, as a figure of matplotlib."""
    with _whole(figure, alone=True) as whole:
        return whole


@contextmanager
def _whole(figure: Figure, *, alone: bool = False) -> Iterator[Canvas]:
    panels = figure.panels
    columns = min(len(panels), 3)
    lines = math.ceil(len(panels) / columns)
    width, height = panels[0].size
    title = _TITLE if len(panels) > 1 else 0.0
    heights = [lines * (height + title), *([_LEGEND] if figure.legend else [])]
    with canvas(columns * width, sum(heights), alone=alone) as whole:
        parts = whole.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        places = parts[0].subfigures(lines, columns, squeeze=False).flat
        for panel, place in zip(panels, places, strict=False):
            if title:
                ratios = [title, height]
                head, place = place.subfigures(2, 1, height_ratios=ratios)
                head.text(0.5, 0.5, panel.title, ha="center", va="center")
            paint(panel, place)
        for place in parts[1:]:
            legend(place, figure.legend)
        yield whole


def paint(panel: Panel, canvas: Canvas) -> None:
    """Draw a panel."""
    (panel.paint or framed(panel, lambda axes: _fill(axes, panel)))(canvas)


def framed(panel: Panel, fill: Callable[[Axes], None]) -> Callable[[Canvas], None]:
    """What draws a panel on axes that leave room for their labels."""

    def painted(figure: Canvas) -> None:
        axes = figure.add_axes((0.1, 0.17, 0.88, 0.79), facecolor="none")
        fill(axes)
        longest = max((len(label.get_text()) for label in axes.get_yticklabels()), default=1)
        left = (14 + 20 * bool(panel.y_label) + 7.0 * longest) / panel.size[0]
        axes.set_position((left, 0.17, (0.955 if panel.x_ends else 0.975) - left, 0.79))
        axes.set_xlabel(panel.x_label)
        axes.set_ylabel(panel.y_label)
        axes.grid(axis="y")
        axes.set_axisbelow(True)

    return painted


def legend(figure: Canvas, entries: Sequence[Series]) -> None:
    """A legend at the foot of a figure."""
    figure.legend(
        handles=[_handle(entry) for entry in entries],
        labels=[entry.label for entry in entries],
        loc="lower center",
        ncols=max(len(entries), 1),
        frameon=False,
        fontsize=11,
        handlelength=1.2,
        handletextpad=0.5,
        columnspacing=1.2,
    )


def _handle(entry: Series) -> Any:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    ink = colour(entry.colour)
    if entry.shape == "area":
        return Patch(facecolor=ink, alpha=AREA, linewidth=0)
    if entry.shape in ("line", "dash"):
        return Line2D([], [], color=ink, linewidth=1.8, linestyle=DASHES[entry.shape])
    return Line2D([], [], color=ink, marker="o", linestyle="none", markersize=8)


def _svg(panel: Panel) -> str:
    with canvas(*panel.size) as figure:
        paint(panel, figure)
        return written(figure)


def _fill(axes: Axes, panel: Panel) -> None:
    drawn = [series for series in panel.series if series.x]
    if not drawn:
        axes.set_axis_off()
        return
    for series in drawn:
        _add(axes, series)
    x = [x for series in drawn for x in series.x]
    low, high = min(x), max(x)
    if panel.log_x and not (panel.numbers or panel.x_ends):
        _widths(axes, sorted({x for s in drawn if s.shape == "dots" for x in s.x}))
    elif panel.log_x:
        room = max(high / low, 2.0) ** 0.06
        logarithmic(axes, "x", *(panel.x_ends or (low / room, high * room)))
    elif panel.numbers or panel.x_ends:
        room = 0.03 * (high - low or 1.0)
        linear(axes, "x", *(panel.x_ends or (low - room, high + room)))
    else:
        axes.set_xlim(round(low) - 0.35, round(high) + 0.35)
        axes.set_xticks(*whole_ticks(round(low), round(high)))
    heights = [y for s in drawn for y in (*s.y, *map(add, s.y, s.error)) if y > 0]
    if panel.log_y and heights:
        logarithmic(axes, "y", *(panel.y_ends or (min(heights) / 1.25, max(heights) * 1.25)))
    else:
        low, high = panel.y_ends or axes.get_ylim()
        room = 0.5 * (high - low < 1e-12 * max(abs(low), abs(high), 1.0))
        linear(axes, "y", low - room, high + room)


def _add(axes: Axes, series: Series) -> None:
    ink, (low, high) = (
        colour(series.colour),
        ([*map(way, series.y, series.error)] for way in (sub, add)),
    )
    if series.shape == "area":
        axes.fill_between(series.x, low, high, color=ink, alpha=AREA / 2, linewidth=0)
    elif series.shape == "line":
        one = "o" if len(series.x) == 1 else ""
        axes.plot(series.x, series.y, color=ink, linewidth=1.8, marker=one)
        if any(series.error):
            axes.fill_between(series.x, low, high, color=ink, alpha=0.22, linewidth=0)
    elif series.shape == "dash":
        axes.plot(series.x, series.y, color=ink, linewidth=1.2, linestyle=DASHES["dash"], zorder=1)
    elif series.shape == "dots":
        # Many steps leave less room for each point.
        size = 6 if len(series.x) <= 16 else 4 if len(series.x) <= 40 else 2.5
        axes.errorbar(
            series.x,
            series.y,
            yerr=series.error if any(series.error) else None,
            linestyle="none",
            marker=MARKERS[int(series.colour) % len(MARKERS) if series.colour.isdigit() else 0],
            markersize=size,
            markeredgewidth=0,
            elinewidth=1.2,
            capsize=0,
            color=ink,
            zorder=3,
        )
    else:
        ring = series.shape == "ring"
        look: dict[str, Any] = {"markerfacecolor": "none" if ring else ink, "clip_on": False}
        look["markeredgecolor"] = ink if ring else colour("page")
        axes.plot(series.x, series.y, "o", markersize=9, markeredgewidth=1.5, zorder=5, **look)


def _widths(axes: Axes, widths: list[float]) -> None:
    axes.set_xscale("log")
    low, high = widths[0], widths[-1]
    room = (high / low) ** 0.06
    axes.set_xlim(low / room, high * room)
    # Labels need a tenth of the axis each; where widths lie closer, some go without.
    shown = [low]
    for width in widths[1:]:
        if math.log(width / shown[-1]) > 0.14 * math.log(high / low):
            shown.append(width)
    axes.set_xticks(shown, [count(round(width)) for width in shown])
    axes.minorticks_off()


def logarithmic(axes: Axes, side: str, low: float, high: float) -> None:
    """Make an axis logarithmic."""
    ticks = decades(low, high)
    axes.set(**{f"{side}scale": "log", f"{side}lim": (low, high)})
    getattr(axes, f"set_{side}ticks")(ticks, [power_label(tick) for tick in ticks])
    axes.minorticks_off()


def linear(axes: Axes, side: str, low: float, high: float) -> None:
    """Let an axis go from one number to another."""
    axes.set(**{f"{side}lim": (low, high)})
    getattr(axes, f"set_{side}ticks")(*round_ticks(low, high))


def decades(low: float, high: float) -> list[float]:
    """Where a logarithmic axis has its ticks."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    wide = math.log10(high / low) > 1.5
    leads = (1.0,) if wide else (1.0, 2.0, 5.0)
    ticks = [lead * 10.0**k for k in range(first, last + 1) for lead in leads]
    inside = [tick for tick in ticks if low <= tick <= high]
    return inside if len(inside) < 7 else inside[:: math.ceil(len(inside) / 6)]


def power_label(value: float) -> str:
    """A tick of a logarithmic axis in words.

    Example:
        >>> power_label(0.01), power_label(2e-7)
        ('0.01', '2·10⁻⁷')
    """
    exponent = math.floor(math.log10(value) + 1e-9)
    lead = round(value / 10.0**exponent)
    if -3 <= exponent <= 3:
        return plain(value, 4)
    power = "10" + superscript(str(exponent))
    return power if lead == 1 else f"{lead}·{power}"


def whole_ticks(low: int, high: int, most: int = 9) -> tuple[list[int], list[str]]:
    """Where an axis of whole numbers has its ticks, and what stands there."""
    from matplotlib.ticker import MaxNLocator

    found = MaxNLocator(nbins=most, steps=[1, 2, 5, 10], integer=True).tick_values(low, high)
    ticks = [round(tick) for tick in found if low <= tick <= high]
    return ticks, [*map(count, ticks)]


def round_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Where a linear axis has its ticks, and what stands there."""
    from matplotlib.ticker import MaxNLocator

    found = MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    ticks = [float(tick) for tick in found if low <= tick <= high]
    gap = min((b - a for a, b in pairwise(ticks)), default=1.0)
    largest = max(map(abs, ticks), default=1.0)
    digits = max(0, math.ceil(math.log10(largest / gap) + 0.5)) if largest > 0 else 1
    if largest and not 1e-3 <= largest < 1e5:
        exponent = math.floor(math.log10(largest))
        factor = "·10" + superscript(str(exponent))
        labels = [plain(tick / 10.0**exponent, digits + 1) + factor for tick in ticks]
    else:
        places = max(0, -math.floor(math.log10(gap) + 1e-9))
        if abs(gap * 10**places - round(gap * 10**places)) > 1e-6:
            places += 1  # steps of 2.5
        labels = [f"{tick + 0.0:.{places}f}" for tick in ticks]
    labels = [label.replace("-", "−") for label in labels]
    zero = 1e-9 * gap  # up to the rounding of the locator
    return ticks, [
        "0" if abs(tick) < zero else label for tick, label in zip(ticks, labels, strict=True)
    ]
