"""``tpcalc signal ACTIVATION``: what becomes of signals and gradients in a deep network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpcalc.errors import EvaluationError
    from tpcalc.functions import Expr
    from tpcalc.results import Curve, Signal

RANKS = (0.125, 0.25, 0.5, 1.0)  # of networks that are drawn, with the same effective variances
SEEDS = 4


def signal(
    activation: str,
    weights: str | None = None,
    biases: str | None = None,
    rank: str = "1",
    family: str = "gaussian",
    depth: int = 50,
    effective: bool = False,
    edge: bool = False,
    q: str | None = None,
    networks: int | None = None,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Signals in deep networks: phase, depth scales, gradients, spectra, edge of chaos."""
    from dataclasses import replace

    from tpcalc.cli.show import answer, check_page, write_page
    from tpcalc.cli.values import activation as read
    from tpcalc.errors import EvaluationError
    from tpcalc.integrals.given import whole
    from tpcalc.meanfield.maps.edge import checked_rank
    from tpcalc.meanfield.survey import survey

    check_page(out)
    share = checked_rank(_number("--rank", rank), "--rank")
    chosen = _edge if edge else _given
    own = whole(read(activation))
    pair = chosen(own.expr, (weights, biases, q), share, effective)
    try:
        found = survey(own, *pair, rank=share, family=family, depth=depth)
    except EvaluationError as error:
        raise _no_length(error, activation, pair, share, depth) from error
    if networks is not None:
        found = replace(found, curves=(*found.curves, *_measured(found, own.expr, networks)))
    title = f"Signals in deep {found.activation} networks"
    write_page(out, title, found)
    named = ("activation", "weights", "biases", "rank", "family", "depth")
    model = {name: getattr(found, name) for name in named}
    answer("signal", model, found, title, as_json, written={"out": out})


def _measured(found: Signal, tau: Expr, width: int) -> Iterator[Curve]:
    """Singular values of networks of a width, over ranks and over depths."""
    import numpy as np

    from tpcalc.doors.numbers import count
    from tpcalc.finite.networks.network import DrawnNetwork
    from tpcalc.meanfield.maps.curves import drawn
    from tpcalc.meanfield.network import network_of
    from tpcalc.meanfield.notation.lines import Line, Lines
    from tpcalc.meanfield.operations import Activation, Dense, Input, SpanBias
    from tpcalc.nonlinearity.tensors.functions import gaussian_inputs
    from tpcalc.nonlinearity.tensors.over_networks import jacobian_sweep

    def draw(setting: tuple[float, int], seed: int) -> DrawnNetwork:
        (rank, depth), (weights, biases) = setting, found.effective
        words = [Dense(weights / rank, found.family, rank), SpanBias(biases / rank, rank)]
        layers = [*words[: 1 + (biases > 0)], Activation(tau)] * depth
        return network_of(Lines((Line(Input(), ()),)).chain(layers), width, width, seed)

    x = gaussian_inputs(1, width, 1.0)[0]
    x = x * (found.start.value / float((x**2).mean())) ** 0.5
    depths = sorted({1, max(1, found.depth // 2), found.depth})
    ranks = [(rank, found.depth) for rank in RANKS]
    rows = jacobian_sweep(draw, [*ranks, *((found.rank, k) for k in depths)], x, seeds=SEEDS)
    over = rows[: len(ranks)]
    for label, side in (("mean", 0), ("+ 1 s.d.", 1), ("- 1 s.d.", -1)):
        y = [row.relative_variance.value + side * row.deviation for row in over]
        errors = [row.relative_variance.stderr for row in over]
        yield drawn("networks", f"{SEEDS} networks of width {width}, {label}", RANKS, y, errors)
    for (_, depth), row in zip(((0, k) for k in depths), rows[len(ranks) :], strict=True):
        values = np.array(row.values[: max(1, round(row.nonzero.value * len(row.values)))])
        shares = (np.arange(len(values)) + 0.5) / len(row.values)
        yield drawn("values", f"after {count(depth, 'layer')}", shares, np.log10(values), 0.0)


Typed = tuple[str | None, str | None, str | None]


def _given(tau: Expr, typed: Typed, rank: float, effective: bool) -> tuple[float, float]:
    """The variances as typed, or those of which they are the effective ones."""
    from fractions import Fraction

    from tpcalc.cli.values import kept, rational
    from tpcalc.errors import UsageError
    from tpcalc.meanfield.maps.layer_map import low_rank_start

    weights, biases, q = typed
    if q is not None:
        raise UsageError("--q: it chooses a point of the edge of chaos.", hint="Add --edge.")
    added = rational("--biases", biases or "0")
    if weights is None:
        share = Fraction(1 if effective else rank)
        weights = str(kept(tau, added * share, share))
    pair = (_number("--weights", weights), float(added))
    return low_rank_start(*pair, rank) if effective else pair


def _edge(tau: Expr, typed: Typed, rank: float, effective: bool) -> tuple[float, float]:
    """Variances at the edge of chaos."""
    from tpcalc.errors import UsageError
    from tpcalc.meanfield.maps.layer_map import edge_of_chaos, edges

    weights, biases, q = typed
    if weights is not None or (q is not None and biases is not None):
        lost = "--weights" if weights is not None else "--biases"
        raise UsageError(f"{lost}: --edge chooses it.", hint="Leave it out.")
    if q is not None:
        pair = tuple(edge_of_chaos(tau, _number("--q", q), rank))
        return pair[0], pair[1]
    wanted = _number("--biases", biases or "0") / (rank if effective else 1)
    # Lengths settle at a stable point alone; of the others 0 is a limit.
    points = edges(tau, wanted, rank)
    best = min(points, key=lambda p: (p.kind != "stable" and not p.every, p.square.value == 0))
    return best.weights.value, best.biases.value


def _no_length(
    error: EvaluationError, activation: str, pair: tuple[float, float], rank: float, depth: int
) -> EvaluationError:
    """What to do about it, in the words of this command: where signals go, layer by layer."""
    if "edge_of_chaos" not in (error.hint or ""):
        return error
    weights, biases = pair
    line = f"tpcalc nlc mlp --depth {depth} --act {activation} --weights {weights:.6g}"
    if rank < 1:
        line += f" --rank {rank:.6g}"
    if biases:
        line += f" --biases {biases:.6g}" + (" --bias span" if rank < 1 else "")
    return type(error)(
        error.message,
        hint=f"Take --edge, or see every layer: {line}",
    )


def _number(flag: str, text: str) -> float:
    from tpcalc.cli.values import rational

    return float(rational(flag, text))
