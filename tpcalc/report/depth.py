"""What becomes of training as blocks are added: sentences and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpcalc.report.tables import Cell, Table, name, number
from tpcalc.report.verdict import Verdict as Judgement
from tpcalc.results import DepthRow, DepthTable, DepthVerdict

__all__ = [
    "PROFILES",
    "depth_lead",
    "depth_profiles",
    "depth_rows",
    "depth_tables",
    "depth_values",
    "judge_depth",
]

_WORDS = {
    "feature-learning": ("good", "Feature learning at any depth: the stream moves"),
    "trivial": ("bad", "Trivial at large depth: the updates of the blocks vanish"),
    "unstable": ("bad", "Unstable: the stream grows with the depth"),
    "undecided": ("warn", "Undecided"),
}
_START = {
    "stationary": ("good", "Critical: what all blocks add is of order 1"),
    "identity": ("warn", "Identity: what all blocks add vanishes"),
    "unstable": ("bad", "Explosion: what all blocks add grows with their number"),
}
_REGIMES = {
    "stationary": "critical",
    "identity": "identity",
    "unstable": "explosion",
    "": "not known",
}
_STATUS = {"derived": "derived, not proved"}
_WIDTHS = {"oo": "infinite, then L", "n": "fixed"}
_ANSWERS = {True: "yes", False: "no", None: "not known"}
PROFILES = {
    "features": "the stream x",
    "gradients": "its adjoint dx",
    "preactivations": "preactivations h of a block",
}
_DIVERSITY = {
    "1/2": "1/2: blocks at distance p differ by sqrt(p)",
    "0": "0: neighbouring blocks compute the same",
    "": "not known",
}


def judge_depth(found: DepthVerdict) -> Judgement:
    """The headline of a verdict on the depth, with the facts that it rests on.

    Args:
        found: The verdict.
    """
    if not found.steps:
        level, words = _START.get(found.verdict, _WORDS["undecided"])
        return Judgement(level, f"{words}, at the start", found.facts)
    level, words = _WORDS.get(found.verdict, ("info", found.verdict))
    if found.verdict == "feature-learning" and found.faithful is False:
        level = "warn"
    return Judgement(level, f"{words}, for t<={found.steps}", found.facts)


def depth_lead(found: DepthVerdict) -> str:
    """The headline as a sentence.

    Args:
        found: The verdict.
    """
    return judge_depth(found).headline + "."


def depth_tables(found: DepthVerdict) -> tuple[Table, ...]:
    """What was decided, the learning rates, the parts of the stream, sets of updates.

    Args:
        found: The verdict.
    """
    if not found.steps:
        return tuple(_start_tables(found))
    facts = (
        ("Verdict", f"{found.verdict} ({found.status})"),
        ("Stable at the start", _ANSWERS[found.stable_start]),
        ("Stable in training", _ANSWERS[found.stable]),
        ("Outputs move by updates of blocks", _ANSWERS[found.moves]),
        ("Features move", _ANSWERS[found.features]),
        ("Preactivations in blocks of order 1 (faithful)", _ANSWERS[found.faithful]),
        ("Diversity exponent kappa", _DIVERSITY[found.diversity]),
        ("Blocks linear in their updates", _ANSWERS[found.linearized]),
        ("In front of a block", _power(found.alpha)),
    )
    tables = [
        _facts(facts),
        Table(
            "Parameters of a block, as powers of L",
            (
                Cell("Parameter"),
                number("Gradient, -delta"),
                number("Update, -gamma"),
                number("Learning rate"),
            ),
            tuple(
                (
                    Cell(rate.label),
                    number(_power(rate.gradient)),
                    number(_power(rate.update)),
                    number(f"L^({rate.raw})"),
                )
                for rate in found.rates
            ),
            "The learning rate is the raw one, as it is typed in a training script.",
        ),
        depth_rows(found.rows),
    ]
    if found.sets:
        tables.append(
            Table(
                "What updates of several matrices of a block add up to",
                (Cell("Matrices"), number("Size")),
                tuple(
                    (Cell(", ".join(row.labels)), number(_size(row.L, row.status)))
                    for row in found.sets
                ),
                "A bound: a product of updates may vanish faster.",
            )
        )
    return tuple(tables)


def _facts(facts: Iterable[tuple[str, str]]) -> Table:
    body = tuple((Cell(left), Cell(right)) for left, right in facts)
    return Table("What was decided", (Cell("Fact"), Cell("Answer")), body)


def _start_tables(found: DepthVerdict) -> Iterator[Table]:
    """What is decided at the start, and which power of 1/L would be critical."""
    yield _facts(
        (
            ("Verdict", f"{_REGIMES.get(found.verdict, found.verdict)} ({found.status})"),
            ("Outputs", _REGIMES[found.outputs]),
            ("Gradients", _REGIMES[found.gradients]),
            ("In front of a block", _power(found.alpha)),
        )
    )
    if found.critical:
        yield Table(
            "Which power in front of a block suits: below it blocks explode, above it they are the "
            "identity",
            (Cell("Of"), Cell("Width"), number("Critical"), Cell("Here"), Cell("Status")),
            tuple(
                (
                    Cell(row.of),
                    Cell(_WIDTHS[row.width]),
                    number(_power(row.alpha)),
                    Cell(_REGIMES[row.here]),
                    Cell(_STATUS.get(row.status, row.status)),
                )
                for row in found.critical
            ),
        )
    yield depth_rows(found.rows)


def depth_rows(rows: tuple[DepthRow, ...]) -> Table:
    """Sizes in the depth.

    Args:
        rows: The sizes.
    """
    return Table(
        "Sizes as powers of L; in the width all are of order 1",
        (Cell("Name"), Cell("Part"), number("Size"), Cell("Status")),
        tuple(
            (name(row.name), Cell(row.part), number(_size(row.L, row.status)), Cell(row.status))
            for row in rows
        ),
        "x[t] is the stream at step t, summed over all blocks, dx[t] its adjoint.",
    )


def _power(less: str) -> str:
    """L to the power of minus something."""
    if less == "0":
        return "1"
    if less.replace("/", "").isalnum():
        return f"L^(-{less})"
    negative = less[0] == "-" and less[1:].replace("/", "").isalnum()
    return f"L^({less[1:]})" if negative else f"L^(-({less}))"


def _size(power: str, status: str) -> str:
    text = {"0": "1", "-oo": "0"}.get(power, f"L^({power})")
    return f"<= {text}" if status == "bound" else text


def depth_profiles(found: DepthTable) -> tuple[Table, ...]:
    """Root mean squares along the depth, of the first sample of each step.

    Args:
        found: The numbers.
    """
    tables = []
    for one in found.arrays:
        if one.axes == ("p", "i", "j"):
            steps = range(0, one.values.shape[-1], found.batch)
            roots = [
                [max(float(one.values[k, i, i]), 0.0) ** 0.5 for i in steps]
                for k in range(len(one.places))
            ]
            tables.append(
                Table(
                    f"Root mean square of {PROFILES[one.name]}, L = {one.depth}",
                    (number("p = l/L"), *(number(f"t = {i // found.batch}") for i in steps)),
                    tuple(
                        (number(f"{p:.4g}"), *(number(f"{value:.6g}") for value in row))
                        for p, row in zip(one.places, roots, strict=True)
                    ),
                    f"{one.route[0].upper()}{one.route[1:]} ({one.method.value}).",
                )
            )
    return tuple(tables)


def depth_values(found: DepthTable) -> tuple[Table, ...]:
    """Numbers of a run at several depths, one column for each.

    Args:
        found: The numbers.
    """
    known = {(row.name, row.depth): str(row.estimate) for row in found.rows}
    tables = []
    if found.rows:
        routes = dict.fromkeys(f"L = {row.depth}: {row.route}." for row in found.rows)
        tables.append(
            Table(
                "A run at infinite width, by the number of blocks L",
                (Cell("Name"), *(number(f"L = {depth}") for depth in found.depths)),
                tuple(
                    (name(one), *(number(known.get((one, depth), "")) for depth in found.depths))
                    for one in found.names
                ),
                " ".join(routes),
            )
        )
    if found.lacking:
        tables.append(
            Table(
                "No numbers",
                (Cell("L"), Cell("Why")),
                tuple((Cell(depth), Cell(why)) for depth, why in found.lacking),
            )
        )
    return tuple(tables)
