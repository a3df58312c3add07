"""One network in three spellings: a named parameterization, starts and rates, and multipliers.

Powers of n stand in a parameterization, in the starts of the weights, or behind the maps. Rates
that are solved for, what updates add, words and verdicts are those of the weights with all powers
in them, and slopes of explicit networks of finite width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

import tpcalc as tp
from tpcalc import n
from tpcalc.training.parameterizations import lookup

SAMPLE, QUERY, TARGET = (1.0, 0.5), (0.5, -0.25), 1.0
DATA = tp.Samples([SAMPLE], [[TARGET]])
LABELS = ("emb", "w", "read")
ETA = 1e-3  # in front of rates: norms are followed by their slopes, whatever the size of an update
Weights = dict[str, torch.Tensor]
Powers = dict[str, Fraction]
Maps = tuple[Callable[..., Any], ...]


def normed(h: torch.Tensor) -> torch.Tensor:
    return h / (h @ h / len(h)).sqrt()


def chain(maps: Maps, x: Any, lib: Any) -> list[Any]:
    """What reads each map: here the functions, and outside the output."""
    emb, w, read = maps
    h = emb(x)
    g = w(lib.tanh(h))
    return [h, g, read(lib.tanh(g))]


def residual(maps: Maps, x: Any, lib: Any) -> list[Any]:
    emb, w, read = maps
    h = lib.tanh(emb(x))
    g = h + w(h)
    return [emb(x), g, read(lib.tanh(g))]


def behind_norm(maps: Maps, x: Any, lib: Any) -> list[Any]:
    emb, w, read = maps
    norm = normed if lib is torch else tp.layers.rms_norm
    h = norm(emb(x))
    g = norm(w(lib.tanh(h)))
    return [h, g, read(lib.tanh(g))]


def squashed(maps: Maps, x: Any, lib: Any) -> list[Any]:
    """Two functions read what w writes."""
    emb, w, read = maps
    h = emb(x)
    g = w(lib.tanh(h))
    return [h, g, read(lib.tanh(g) + lib.sin(g))]


NETWORKS = {each.__name__: each for each in (chain, residual, behind_norm, squashed)}


@dataclass(frozen=True)
class Spelling:
    """A network as it is written: starts n^-(b - m) and multipliers n^-m; None: by its name."""

    body: Callable[..., list[Any]]
    start: Powers | None = None
    behind: Powers | None = None

    @property
    def network(self) -> Any:
        def net(t: Any, x: Any) -> Any:
            sides = {"emb": (t.n, "in"), "w": (t.n, t.n), "read": (t.outputs, t.n)}
            return self.body(tuple(self._map(t, *own) for own in sides.items()), x, tp)[-1]

        return tp.network(net)

    def _map(self, t: Any, label: str, sides: tuple[Any, Any]) -> Callable[[Any], Any]:
        if self.start is None:
            return t.linear(*sides, name=label)
        power = self.behind[label] if self.behind else Fraction(0)
        own = t.linear(*sides, init=f"n^({power - self.start[label]})", name=label)
        return (lambda x: n**-power * own(x)) if power else own

    def gauge(self, label: str, degree: int) -> Fraction:
        """What the power c of a rate differs by from that of the weights with all powers in."""
        return (1 + degree) * self.behind[label] if self.behind else Fraction(0)


DEGREE = {"sgd": 1, "momentum": 1, "adam": 0, "adamw(decay=0.1)": 0}


def spellings(name: str, parameterization: str, degree: int) -> tuple[list[Spelling], Powers]:
    """The three of a network, and the powers c of the parameterization."""
    table = lookup(parameterization).under(degree).exponents(2, 0)
    b, c = ([power.constant or Fraction(0) for power in row] for row in (table.a, table.c))
    starts = dict(zip(LABELS, b, strict=True))
    rates = {k: c + (1 + degree) * starts[k] for k, c in zip(LABELS, c, strict=True)}
    body = NETWORKS[name]
    return [Spelling(body), Spelling(body, starts), Spelling(body, starts, starts)], rates


def rates_of(one: Spelling, degree: int, found: tp.Solution) -> tuple[list[Any], list[Any]]:
    """Powers c step by step and the largest stable ones, of the weights with all powers in."""
    solved = [[Fraction(c) + one.gauge(own.name, degree) for c in own.c] for own in found.stored]
    largest = [Fraction(str(row.rate)) - one.gauge(row.name, degree) for row in found.largest]
    return solved, largest


def added(body: Any, b: Powers, c: Powers, entrywise: bool, size: int, seed: int) -> list[float]:
    """How much what reads a map moves by its first update alone, all others being there."""
    torch.manual_seed(seed)
    shapes = {"emb": (size, 2), "w": (size, size), "read": (size,)}
    start = {
        k: size ** -float(b[k]) * torch.randn(shape, dtype=torch.float64)
        for k, shape in shapes.items()
    }

    def reads(weights: Weights, x: torch.Tensor) -> list[torch.Tensor]:
        maps = tuple(lambda v, k=k: weights[k] @ v for k in LABELS)
        return body(maps, x, torch)

    leaves = {k: w.requires_grad_() for k, w in start.items()}
    loss = (reads(leaves, torch.tensor(SAMPLE, dtype=torch.float64))[-1] - TARGET) ** 2 / 2
    slopes = torch.autograd.grad(loss, list(leaves.values()))
    with torch.no_grad():
        moved = {
            k: w - ETA * size ** -float(c[k]) * (slope.sign() if entrywise else slope)
            for (k, w), slope in zip(leaves.items(), slopes, strict=True)
        }
        x = torch.tensor(QUERY, dtype=torch.float64)
        after = reads(moved, x)
        return [
            float(((after[k] - reads({**moved, label: leaves[label]}, x)[k]) ** 2).mean())
            for k, label in enumerate(LABELS)
        ]


def slopes_of(
    body: Any, b: Powers, c: Powers, entrywise: bool, seeds: int
) -> tuple[list[float], list[float]]:
    """Slopes in log n with their standard errors."""
    widths = (64, 128, 256, 512)
    logs = np.log(widths)
    runs = [[added(body, b, c, entrywise, size, s) for s in range(seeds)] for size in widths]
    values = 0.5 * np.log(np.array(runs))  # widths, seeds, maps
    own = np.polyfit(logs, values.mean(1), 1)[0]
    spread = (values.var(1, ddof=1) / seeds).T
    weights = (logs - logs.mean()) / ((logs - logs.mean()) ** 2).sum()
    return list(own), list(np.sqrt(spread @ weights**2))


CASES = [
    *((name, "mup", optimizer) for name in NETWORKS for optimizer in DEGREE),
    *(("chain", rule, optimizer) for rule in ("ntk", "standard") for optimizer in ("sgd", "adam")),
    *(("behind_norm", rule, "adam") for rule in ("ntk", "standard")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rule", "optimizer"), CASES)
def test_three_spellings_are_one_network(name: str, rule: str, optimizer: str) -> None:
    degree = DEGREE[optimizer]
    three, given = spellings(name, rule, degree)
    solved, checked = [], []
    for one in three:
        by = rule if one.start is None else "own"
        found = tp.solve(one.network, by, DATA, steps=1, optimizer=optimizer, verify=False)
        solved.append(rates_of(one, degree, found))
        powers = {k: given[k] - one.gauge(k, degree) for k in LABELS}
        groups = {k: {} if by == rule else {"power": str(-c)} for k, c in powers.items()}
        if "decay" in optimizer:  # the share of a weight that decay takes is its rate times this
            behind = three[2].behind if by == rule else one.behind
            for label, power in (behind or {}).items():
                groups[label]["decay"] = f"0.1 n^({-power})"
        run = tp.Training(one.network, by, DATA, steps=1, optimizer=optimizer, groups=groups)
        checked.append(tp.check(run))
    assert solved[0] == solved[1] == solved[2]
    first, *others = checked
    rows = [(row.name, row.n, row.status) for row in first.updates]
    words = [(one.label, one.moves, one.weights, one.reason) for one in first.layers]
    decay = [note for note in first.notes if note.startswith("decay")]
    assert bool(decay) is ("decay" in optimizer)
    for other in others:
        assert [(row.name, row.n, row.status) for row in other.updates] == rows
        assert [(one.label, one.moves, one.weights, one.reason) for one in other.layers] == words
        assert [note for note in other.notes if note.startswith("decay")] == decay
        assert (other.verdict, other.first_order.word) == (first.verdict, first.first_order.word)
    starts = three[1].start
    assert starts is not None
    sizes = {row.name: row for row in first.updates}
    found, errors = slopes_of(
        NETWORKS[name], starts, given, degree == 0, 8 if rule == "mup" else 32
    )
    for label, slope, error in zip(LABELS, found, errors, strict=True):
        row = sizes[f"dW_x[{label},1,1]"]
        assert row.n.constant is not None
        off, within = slope - float(row.n.constant), max(5 * error, 0.1)
        assert (abs(off) if row.status == "exact" else off) < within < 0.5, label
