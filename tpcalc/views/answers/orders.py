"""Orders of size and learning-rate exponents as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tpcalc.doors.numbers import count
from tpcalc.names import Name
from tpcalc.results import PLAIN, Exponent, OrderRow, OrderTable, Solution
from tpcalc.results.data import grouped
from tpcalc.views.labels import index, symbol
from tpcalc.views.tables import Table, name, number, sentence
from tpcalc.views.view import Judgement, Part, View, view

_LETTERS = ("h", "x", "dh", "dx", "dW_x", "dB")
_HIDDEN = ("h", "x", "dh", "dx")
_STORED = "Weights as they are stored, W = n^(-a) w: standard deviation n^(-b), rates eta n^(-c)"
_LEGEND = "1: neither grows nor vanishes with n. 0: identically 0."
Place = tuple[int, int]  # input and output
Cells = dict[int, OrderRow]  # by layer


def size(n: Exponent, status: str = "exact") -> str:
    """A size as a power of n; a bound is never written as an equality.

    Example:
        >>> [size(Exponent.of(text)) for text in ("-1/2", "0", "1/2 - a")]
        ['n^(-1/2)', '1', 'n^(1/2 - a)']
        >>> size(Exponent.of("-1"), "upper")
        '<= n^-1'
    """
    if n.exact is None:
        return n.size("n", "no bound known")
    text = "n" if n.constant == 1 else "1" if n == PLAIN else n.raised("n")
    return text if status == "exact" else f"<= {text}"


def region_lines(region: Sequence[str], point: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Where formulas with symbols hold; nothing where there are no symbols.

    Example:
        >>> region_lines(("a > 1/2", "b > 0"), (("a", "1"), ("b", "1")))
        ('Holds where a > 1/2, b > 0.', 'Comparisons were decided at a = 1, b = 1.')
    """
    lines = []
    if region:
        lines.append(f"Holds where {', '.join(region)}.")
    elif point:
        lines.append(f"Holds for all values of {', '.join(name for name, _ in point)}.")
    if point:
        values = ", ".join(f"{name} = {value}" for name, value in point)
        lines.append(f"Comparisons were decided at {values}.")
    return tuple(lines)


def order_lines(table: OrderTable) -> tuple[str, ...]:
    """Where the orders of a table hold, and up to which step they are followed."""
    ended = (table.exploded.text,) if table.exploded else ()
    return (*ended, *region_lines(table.region, table.point))


def row_tables(rows: Sequence[OrderRow], caption: str) -> tuple[Table, ...]:
    """Orders by layer where their names say so, else one by one; then bounds, then slopes."""
    keyed = [(Name.tabled(row.name), row) for row in rows]
    hidden = [key.number or 0 for key, _ in keyed if key.word in _HIDDEN]
    layered = any(key.word in _LETTERS for key, _ in keyed)
    placed: list[tuple[Name, OrderRow]] = []
    others: list[tuple[Name, OrderRow]] = []
    for key, row in keyed:
        fits = key.word in _LETTERS or (key.word == "f" and bool(hidden))
        (placed if layered and fits and key.step is not None else others).append((key, row))
    tables = (
        _by_layer(placed, max(hidden, default=0), caption),
        _bounds(row for _, row in placed if row.status != "exact" and row.reason),
        _one_by_one([row for _, row in others], "Others" if placed else caption),
        _slopes([row for row in rows if row.slope is not None or row.note]),
    )
    return tuple(table for table in tables if table.rows)


def _by_layer(rows: Sequence[tuple[Name, OrderRow]], depth: int, caption: str) -> Table:
    """A row for each step and quantity, a column for each layer; the output is layer L + 1."""
    groups: dict[tuple[int, str], dict[Place, Cells]] = {}
    for key, row in rows:
        layer = depth + 1 if key.number is None else key.number
        places = groups.setdefault((key.step or 0, key.word), {})
        places.setdefault((key.input or 0, key.output or 0), {})[layer] = row
    layers = sorted({layer for places in groups.values() for c in places.values() for layer in c})
    order = [*_LETTERS, "f"]
    lines = [
        (step, letter, place, cells)
        for step, letter in sorted(groups, key=lambda group: (group[0], order.index(group[1])))
        for place, cells in _merged(groups[step, letter])
    ]
    inputs = any(place is not None for _, _, place, _ in lines)
    columns = ("#output" if depth and k > depth else f"#l = {k}" for k in layers)
    head = ("#Step", "Quantity", inputs and "#Input", *columns)
    body = []
    for step, letter, place, cells in lines:
        found = [cells.get(layer) for layer in layers]
        sizes = (size(row.n, row.status) if row else "" for row in found)
        body.append((str(step), symbol(Name(letter)), _where(letter, place), *sizes))
    return Table.of(caption, head, body, _LEGEND)


def _merged(places: dict[Place, Cells]) -> list[tuple[Place | None, Cells]]:
    """One entry, without a place, where the orders are the same for every input."""
    together: Cells = {}
    for cells in places.values():
        for layer, row in cells.items():
            other = together.setdefault(layer, row)
            if (row.n, row.status) != (other.n, other.status):
                return list(places.items())
    return [(None, together)]


def _where(letter: str, place: Place | None) -> str:
    if place is None:
        return "all"
    return index(Name("", step=0, cell=place if place[1] else place[:1]))


def _bounds(rows: Iterable[OrderRow]) -> Table:
    """Bounds with their reasons; those of one size and reason in one row."""
    head = ("Names", "#Size", "Why no more is known")
    groups = grouped(rows, lambda row: (size(row.n, row.status), row.reason))
    names = [[row.name for row in group] for group in groups.values()]
    body = (
        (name(own[0]) if len(own) == 1 else sentence(", ".join(own)), *key)
        for key, own in zip(groups, names, strict=True)
    )
    return Table.of("Upper bounds", head, body)


def _one_by_one(rows: Sequence[OrderRow], caption: str) -> Table:
    body = []
    for row in rows:
        status = "upper bound" if row.status == "upper" else row.status
        body.append((row.name, size(row.n, row.status), status, row.reason))
    return Table.of(caption, ("`Name", "#Size", "Status", "?Why"), body)


def _slopes(rows: Sequence[OrderRow]) -> Table:
    body = []
    for row in rows:
        tone = "warn" if row.agrees is False else ""
        known = row.low is not None and row.high is not None
        slope = number("" if row.slope is None else f"{row.slope:.2f}", tone)
        interval = number(f"{row.low:.2f} to {row.high:.2f}" if known else "", tone)
        body.append((row.name, size(row.n, row.status), slope, interval, row.note))
    head = ("`Name", "#Size", "#Slope", "#95 % interval", "?Remark")
    return Table.of("Slope of log size against log n at finite widths", head, body)


_EDITS = "Edits after which no first step grows"
_LARGEST = "Largest rates at which bounds show that no step grows (weights as in the network)"


def solution_tables(solution: Solution) -> tuple[Table, ...]:
    """Learning-rate exponents, a row for each step and a column for each layer."""
    steps = solution.steps
    weights = [(step.step, step.c) for step in steps if step.c]
    biases = [(step.step, step.bias_c) for step in steps if step.bias_c]
    largest = (
        (
            one.name,
            one.rate.raised("n"),
            one.given.raised("n"),
            "" if one.factor is None else f"{one.factor:.4g}",
            one.where,
            one.other.raised("n") if one.beside else "",
            one.beside,
        )
        for one in solution.largest
    )
    rates = ("`Parameter", "#Rate", "#Given", "?#Factor", "Decided by", "?#Else", "?By")
    lines = ((str(len(one.lines)), "; ".join(one.lines), one.word) for one in solution.edits)
    stored = ((one.name, one.role, one.b, one.rate) for one in solution.stored)
    return (
        _exponents(weights, "weights", solution.names),
        _exponents(biases, "biases", solution.bias_names),
        Table.of("Formulas", ("`Name", "#Exponent"), solution.closed),
        Table.of(_STORED, ("`Parameter", "Role", "#b", "#c"), stored),
        Table.of(_LARGEST, rates, largest),
        Table.of(_EDITS, ("#Lines", "Edit", "Then, by bounds"), lines),
    )


def _exponents(
    rows: Sequence[tuple[int, tuple[str, ...]]], what: str, names: tuple[str, ...]
) -> Table:
    letter, width = "c" if names else "c_l", max((len(values) for _, values in rows), default=0)
    caption = f"Learning rates of {what}: exponents {letter} of eta n^(-{letter})"
    head = ("#Step", *(f"#{name}" for name in names or [f"l = {k + 1}" for k in range(width)]))
    body = ((str(step), *values, *[""] * (width - len(values))) for step, values in rows)
    return Table.of(caption, head, body)


def judge_orders(rows: Sequence[OrderRow]) -> Judgement:
    """How sure exponents are, and whether measured slopes agree with them."""
    bounds = [row.name for row in rows if row.status != "exact"]
    apart = [row.name for row in rows if row.agrees is False]
    if apart:
        reason = f"Slopes that do not agree with the exponents: {_some(apart)}"
        return Judgement("warn", "Some measured slopes disagree with the exponents", (reason,))
    if bounds:
        reason = f"Bounds: {_some(bounds)}"
        return Judgement("warn", "Some orders are upper bounds", (reason,))
    return Judgement("good", "Exact exponents")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else ".")


def _counted(rows: Sequence[OrderRow]) -> str:
    bounds = sum(row.status != "exact" for row in rows)
    text = f"The order of size of {len(rows)} quantit{'y' if len(rows) == 1 else 'ies'}"
    return f"{text}; {bounds} of them are upper bounds." if bounds else f"{text}, all exact."


def depth_rows(rows: tuple[OrderRow, ...]) -> Table:
    """Sizes in the depth."""
    return Table.of(
        "Sizes in the number of blocks L; in the width all are of order 1",
        ("`Name", "Part", "#Size", "Status"),
        ((row.name, row.part, bounded(row.size, row.status), _sure(row)) for row in rows),
        "x[t] is the stream at step t, summed over all blocks, dx[t] its adjoint.",
    )


def bounded(size: str, status: str) -> str:
    """A size, as a bound where it is one."""
    return f"<= {size}" if status == "bound" else size


def _sure(row: OrderRow) -> str:
    """How sure a size is, with the number of a power that is no fraction."""
    if row.real is None:
        return row.status
    return f"{row.status}; the power is {row.real.formula} = {row.real.value}"


@view.register
def _(table: OrderTable) -> View:
    if any(row.L is not None for row in table.rows):
        lead = " ".join(region_lines(table.region, ()))
        part = Part("depth", "Depth", lead, (depth_rows(table.rows),))
        return View.of(table, "Depth", part)
    lead = "A size is a power of the width n; bounds are marked as such."
    tables = row_tables(table.rows, "Order of size of a coordinate")
    part = Part("orders", "Orders", " ".join((lead, *order_lines(table))), tables)
    said, summary = judge_orders(table.rows), _counted(table.rows)
    return View.of(table, "Orders", part, said=said, summary=summary)


@view.register
def _(solution: Solution) -> View:
    lead = "With these exponents every update contributes Θ(1) to its preactivation."
    lead = lead if solution.steps else ""
    where = region_lines(solution.region, solution.point)
    part = Part("solution", "Learning rates", " ".join((lead, *where)), solution_tables(solution))
    steps = len(solution.steps)
    words = f"Learning-rate exponents of {count(steps, 'step')}"
    said = Judgement("good", words if steps else "The largest stable learning rates")
    return View.of(solution, "Learning rates", part, said=said)
