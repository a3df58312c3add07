"""What an update adds is told where it is read: slopes of explicit networks, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

import tpcalc as tp
from tpcalc import n

layer_norm, rms_norm = tp.layers.layer_norm, tp.layers.rms_norm
SAMPLE, QUERY, TARGET = (1.0, 0.5), (0.5, -0.25), 1.0
DATA = tp.Samples([SAMPLE], [[TARGET]])
Weights = dict[str, torch.Tensor]
Reads = dict[str, torch.Tensor]


def normed(h: torch.Tensor) -> torch.Tensor:
    return h / (h @ h / len(h)).sqrt()


def maps(t: Any, *inits: object) -> tuple[Any, Any, Any]:
    first, hidden, last = inits
    return (
        t.linear(t.n, "in", init=first, name="emb"),
        t.linear(t.n, t.n, init=hidden, name="w"),
        t.linear(t.outputs, t.n, init=last, name="read"),
    )


def written(t: Any, x: Any) -> Any:
    emb, w, read = maps(t, 1, 1, 1)
    return n**-1 * read(tp.tanh(n ** "-1/2" * w(tp.tanh(emb(x)))))


def written_reads(w: Weights, x: torch.Tensor, size: int) -> Reads:
    h = w["emb"] @ x
    g = size**-0.5 * w["w"] @ torch.tanh(h)
    return {"emb": h, "w": g, "read": w["read"] @ torch.tanh(g) / size}


def small_behind(t: Any, x: Any) -> Any:
    emb, w, read = maps(t, "n", "n^(-1/2)", "n^(-1)")
    return read(tp.tanh(w(tp.tanh(n**-1 * emb(x)))))


def small_reads(w: Weights, x: torch.Tensor, size: int) -> Reads:
    h = w["emb"] @ x / size
    g = w["w"] @ torch.tanh(h)
    return {"emb": h, "w": g, "read": w["read"] @ torch.tanh(g)}


def large_behind(t: Any, x: Any) -> Any:
    emb, w, read = maps(t, "n^(-1/2)", "n^(-1/2)", "n^(-1)")
    return read(tp.tanh(w(tp.tanh(n ** "1/2" * emb(x)))))


def large_reads(w: Weights, x: torch.Tensor, size: int) -> Reads:
    h = size**0.5 * w["emb"] @ x
    g = w["w"] @ torch.tanh(h)
    return {"emb": h, "w": g, "read": w["read"] @ torch.tanh(g)}


def scaled_sum(t: Any, x: Any) -> Any:
    emb, w, read = maps(t, 1, 1, "n^(-1)")
    v = t.linear(t.n, t.n, init=1, name="v")
    h = tp.tanh(emb(x))
    return read(tp.tanh(n ** "-1/2" * (w(h) + v(h))))


def scaled_sum_reads(w: Weights, x: torch.Tensor, size: int) -> Reads:
    h = w["emb"] @ x
    g = size**-0.5 * (w["w"] @ torch.tanh(h) + w["v"] @ torch.tanh(h))
    return {"emb": h, "w": g, "v": g, "read": w["read"] @ torch.tanh(g)}


def two_readers(t: Any, x: Any) -> Any:
    """One reader sees n^(-1/2) of what w writes, the other all of it."""
    emb, w, read = maps(t, 1, "n^(-1/2)", "n^(-1)")
    g = w(tp.tanh(emb(x)))
    return read(tp.tanh(g) + tp.sin(n ** "-1/2" * g))


def two_readers_reads(w: Weights, x: torch.Tensor, size: int) -> Reads:
    h = w["emb"] @ x
    g = w["w"] @ torch.tanh(h)
    return {"emb": h, "w": g, "read": w["read"] @ (torch.tanh(g) + torch.sin(size**-0.5 * g))}


def gated(t: Any, x: Any) -> Any:
    emb, w, read = maps(t, 1, "n^(-1/2)", "n^(-1)")
    h = tp.tanh(emb(x))
    return read(tp.sigmoid(t.linear(t.n, t.n, init="n^(-1/2)", name="v")(h)) * w(h))


def gated_reads(w: Weights, x: torch.Tensor, size: int) -> Reads:
    h = w["emb"] @ x
    gate, u = w["v"] @ torch.tanh(h), w["w"] @ torch.tanh(h)
    product = torch.sigmoid(gate) * u
    return {"emb": h, "v": gate, "w": product, "read": w["read"] @ product}


def before_norm(t: Any, x: Any) -> Any:
    emb, w, read = maps(t, 1, "n^(-1/2)", "n^(-1)")
    h = emb(x)
    return read(rms_norm(h + w(tp.tanh(rms_norm(h)))))


def before_norm_reads(w: Weights, x: torch.Tensor, size: int) -> Reads:
    h = w["emb"] @ x
    g = w["w"] @ torch.tanh(normed(h))
    return {"emb": normed(h), "w": normed(h + g), "read": w["read"] @ normed(h + g)}


def after_norm(t: Any, x: Any) -> Any:
    emb, w, read = maps(t, 1, "n^(-1/2)", "n^(-1)")
    h = tp.tanh(emb(x))
    return read(tp.tanh(rms_norm(h + w(h))))


def after_norm_reads(w: Weights, x: torch.Tensor, size: int) -> Reads:
    h = w["emb"] @ x
    g = normed(torch.tanh(h) + w["w"] @ torch.tanh(h))
    return {"emb": h, "w": g, "read": w["read"] @ torch.tanh(g)}


def unit_norm(t: Any, x: Any) -> Any:
    """h / |h| times sqrt(n): two powers that make one factor of order one."""
    emb, w, read = maps(t, 1, "n^(-1/2)", "n^(-1)")
    h = w(tp.tanh(emb(x)))
    return read(tp.tanh(n ** "1/2" * ((n * t.inner(h, h)) ** Fraction(-1, 2) * h)))


def unit_norm_reads(w: Weights, x: torch.Tensor, size: int) -> Reads:
    h = w["emb"] @ x
    g = normed(w["w"] @ torch.tanh(h))
    return {"emb": h, "w": g, "read": w["read"] @ torch.tanh(g)}


def zero_start(t: Any, x: Any) -> Any:
    """A map that starts at 0, with a power behind it."""
    emb, w, read = maps(t, 1, 0, "n^(-1)")
    h = tp.tanh(emb(x))
    return read(h + n ** "-1/2" * w(h))


def zero_start_reads(w: Weights, x: torch.Tensor, size: int) -> Reads:
    h = w["emb"] @ x
    g = size**-0.5 * w["w"] @ torch.tanh(h)
    return {"emb": h, "w": g, "read": w["read"] @ (torch.tanh(h) + g)}


def norm_of_small(t: Any, x: Any) -> Any:
    emb, w, read = maps(t, "n^(-1/2)", "n^(-1/2)", "n^(-1)")
    return read(tp.tanh(w(layer_norm(emb(x)))))


def norm_of_small_reads(w: Weights, x: torch.Tensor, size: int) -> Reads:
    h = normed((h := w["emb"] @ x) - h.mean())
    g = w["w"] @ h
    return {"emb": h, "w": g, "read": w["read"] @ torch.tanh(g)}


def norm_of_large(t: Any, x: Any) -> Any:
    emb, w, read = maps(t, "n^(1/2)", "n^(-1/2)", "n^(-1)")
    return read(tp.tanh(w(tp.tanh(layer_norm(emb(x))))))


def norm_of_large_reads(w: Weights, x: torch.Tensor, size: int) -> Reads:
    h = normed((h := w["emb"] @ x) - h.mean())
    g = w["w"] @ torch.tanh(h)
    return {"emb": h, "w": g, "read": w["read"] @ torch.tanh(g)}


Case = tuple[Callable[..., Any], Callable[..., Reads], dict[str, str]]
OWN = {"emb": "0", "w": "-1/2", "read": "-1"}
CASES: dict[str, Case] = {
    "written": (written, written_reads, {"emb": "0", "w": "0", "read": "0"}),
    "small behind": (small_behind, small_reads, {**OWN, "emb": "1"}),
    "large behind": (large_behind, large_reads, {**OWN, "emb": "-1/2"}),
    "scaled sum": (scaled_sum, scaled_sum_reads, {**OWN, "w": "0", "v": "0"}),
    "two readers": (two_readers, two_readers_reads, OWN),
    "gated": (gated, gated_reads, {**OWN, "v": "-1/2"}),
    "before a norm": (before_norm, before_norm_reads, OWN),
    "after a norm": (after_norm, after_norm_reads, OWN),
    "unit norm": (unit_norm, unit_norm_reads, OWN),
    "norm of small": (norm_of_small, norm_of_small_reads, {**OWN, "emb": "-1/2"}),
    "norm of large": (norm_of_large, norm_of_large_reads, {**OWN, "emb": "1/2"}),
    "zero start": (zero_start, zero_start_reads, {"emb": "0", "w": "-oo", "read": "-1"}),
}
WANTED = {  # of Adam, where something else than the rates of muP comes out
    "written": ("0", "1/2", "0"),
    "small behind": ("-1", "1", "1"),
    "large behind": ("1/2", "1", "1"),
    "scaled sum": ("0", "1/2", "1/2", "1"),
    "norm of small": ("1/2", "1", "1"),
    "norm of large": ("-1/2", "1", "1"),
    "zero start": ("0", "1/2", "1"),
}


def drawn(inits: dict[str, str], size: int, seed: int) -> Weights:
    torch.manual_seed(seed)
    shapes = {"emb": (size, 2), "read": (size,)}
    found = {}
    for name, power in inits.items():
        entries = torch.randn(shapes.get(name, (size, size)), dtype=torch.float64)
        std = 0.0 if power == "-oo" else size ** float(Fraction(power))
        found[name] = std * entries
    return found


def added(
    case: Case, c: dict[str, float], optimizer: str, size: int, seed: int
) -> dict[str, float]:
    """How much what reads a map moves by its first update alone, all others being there."""
    _, reads, inits = case
    start = {name: w.requires_grad_() for name, w in drawn(inits, size, seed).items()}
    loss = (reads(start, torch.tensor(SAMPLE, dtype=torch.float64), size)["read"] - TARGET) ** 2 / 2
    slopes = torch.autograd.grad(loss, list(start.values()))
    with torch.no_grad():
        step = {
            name: size ** -c[name] * (slope if optimizer == "sgd" else slope.sign())
            for name, slope in zip(start, slopes, strict=True)
        }
        moved = {name: w - step[name] for name, w in start.items()}
        x = torch.tensor(QUERY, dtype=torch.float64)
        after = reads(moved, x, size)
        found = {}
        for name, w in start.items():
            without = reads({**moved, name: w}, x, size)
            found[name] = float(((after[name] - without[name]) ** 2).mean())
    return found


def slopes_of(
    case: Case, c: dict[str, float], optimizer: str, widths: tuple[int, ...], seeds: int
) -> dict[str, float]:
    rows = []
    for size in widths:
        runs = [added(case, c, optimizer, size, seed) for seed in range(seeds)]
        rows.append({name: np.mean([run[name] for run in runs]) for name in runs[0]})
    logs = np.log(widths)
    return {
        name: float(np.polyfit(logs, [0.5 * np.log(row[name]) for row in rows], 1)[0])
        for name in rows[0]
    }


def agrees(name: str, optimizer: str, lower: Fraction, widths: tuple[int, ...], seeds: int) -> None:
    """Slopes at the rates of solve, or n^(-lower) times them, and what check says of them."""
    case = CASES[name]
    net = tp.network(case[0])
    solved = tp.solve(net, "own", DATA, steps=1, optimizer=optimizer, verify=False)
    if optimizer == "adam":
        usual = {"emb": "0", "read": "1"}
        assert solved.steps[0].c == WANTED.get(name, tuple(usual.get(k, "1") for k in case[2]))
    c = {
        label: Fraction(power) + lower
        for label, power in zip(solved.names, solved.steps[0].c, strict=True)
    }
    groups = {label: {"power": str(-power)} for label, power in c.items()}
    run = tp.Training(net, "own", DATA, steps=1, optimizer=optimizer, groups=groups)
    found = tp.check(run, verify=False)
    measured = slopes_of(case, {k: float(v) for k, v in c.items()}, optimizer, widths, seeds)
    for layer in found.layers:
        assert measured[layer.label] == pytest.approx(float(-lower), abs=0.1), layer
        assert layer.moves is (lower == 0), layer
        assert layer.weights in (("moves",) if lower == 0 else ("vanishes", "frozen")), layer


@pytest.mark.parametrize("name", ["written", "large behind", "two readers", "after a norm"])
def test_updates_move_what_reads_them_by_order_one(name: str) -> None:
    agrees(name, "adam", Fraction(0), (128, 256, 512), 8)


@pytest.mark.slow
@pytest.mark.parametrize("lower", [Fraction(0), Fraction(1, 2)])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("name", CASES)
def test_slopes_of_explicit_networks(name: str, optimizer: str, lower: Fraction) -> None:
    agrees(name, optimizer, lower, (128, 256, 512, 1024, 2048), 8)


FACTORS = [
    ({"init": "n^(-1/2)", "rate": "n^(-1)"}, "sgd", ["-1/2", "-1/2"]),
    ({"init": "n^(-1/2)", "rate": "n^(-1)"}, "adam", ["1", "1"]),
    ({"start": 0, "rate": "n^(-1/2)"}, "adam", ["any", "1"]),
    ({"start": 0}, "adam", ["any", "1"]),
]


@pytest.mark.parametrize(("factor", "optimizer", "powers"), FACTORS)
def test_a_factor_is_part_of_what_an_update_adds(
    factor: dict[str, Any], optimizer: str, powers: list[str]
) -> None:
    """Rates at which the other factor does not grow; what a small factor leaves is told."""

    @tp.network
    def net(t, x):
        emb, w, read = maps(t, 1, "n^(-1/2)", "n^(-1)")
        h = tp.tanh(emb(x))
        return read(tp.tanh(h + t.vector("g", **factor) * w(h)))

    found = tp.solve(net, "own", DATA, steps=2, optimizer=optimizer, verify=False)
    assert [step.c[1] for step in found.steps] == powers
    told = any("its update contributes n^(-1/2)" in note for note in found.notes)
    assert told is ("rate" in factor)
