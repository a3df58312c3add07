"""Random networks of one's own with written powers of n, against torch with explicit weights.

Powers stand in the starts of weights, behind maps and in learning rates, norms and biases between
maps and what reads them; some weights start at 0, some are not trained. Verdicts, the orders of
updates, orders and limits of the program, and the rates that ``tp.solve`` finds are compared with
the slopes of the same networks in the width.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Any

import tpcalc as tp
from tests.fuzz.claims import Case, Named, Subject, claims
from tests.fuzz.judge import Pair, Size, Zero, paired
from tests.fuzz.written import RATE, Forward, Power, Reading, Weights, network
from tpcalc.results import OrderRow, Solution, Verdict

__all__ = ["subject"]

ACTS = ("relu", "tanh", "tanh", "gelu", "sin", "identity", "swish")
HALF = Fraction(1, 2)
ONE = tp.Samples(((1.0, 0.5),), ((1.0,),))
TWO = tp.Samples(((1.0, 0.5), (-0.5, 1.0)), ((1.0,), (-0.5,)))
QUERY = (0.7, 1.2)
WIDTHS = (((128, 24), (512, 12)), ((256, 24), (1024, 12)))  # and how many networks
VANISHES = -0.25  # the power of n of what is said to vanish is at most this


@dataclass(frozen=True)
class Map:
    """A map, what stands behind it, and how it is trained.

    Args:
        name: Its name.
        kind: ``"input"``, ``"hidden"``, ``"readout"``.
        init: The standard deviation of its weights at the start.
        front: What its values are multiplied by.
        rate: The factor of its learning rate.
        norm: The norm behind it.
        act: The activation behind all of this.
        bias: Its bias, with what it has of its own.
        frozen: Whether it is not trained.
    """

    name: str
    kind: str
    init: Power
    front: Power
    rate: Power
    norm: str = "none"
    act: str = "identity"
    bias: Weights | None = None
    frozen: bool = False


@dataclass(frozen=True)
class Net:
    """A chain of maps and its training."""

    maps: tuple[Map, ...]
    optimizer: str
    steps: int
    data: tp.Samples

    @property
    def forward(self) -> Forward:
        """The chain, in a reading."""

        def net(o: Reading, x: Any) -> Any:
            for one in self.maps:
                x = o.linear(one.name, one.kind, x, Weights(one.init, one.rate), one.bias)
                x = o.act(one.act, o.norm(one.norm, o.times(one.front, x)))
                if one.kind != "readout":
                    o.watch(one.name, x)
            return x

        return net

    @property
    def frozen(self) -> frozenset[str]:
        """The names of the maps that are not trained."""
        return frozenset(one.name for one in self.maps if one.frozen)

    @property
    def run(self) -> Any:
        """Its training."""
        return tp.Training(
            network(self.forward),
            "own",
            self.data,
            steps=self.steps,
            batch=len(self.data),
            optimizer=self.optimizer,
            lr=RATE,
            groups={name: {"lr": 0} for name in self.frozen},
            watch=("x", "dx"),
        )


def net(seed: int) -> Net:
    """The network of a seed."""
    r = Random(f"own {seed}")
    optimizer = r.choice(("sgd", "sgd", "adam", "adam", "momentum", "signsgd"))
    act, maps = r.choice(ACTS), []
    kinds = ["input", *["hidden"] * r.choice((1, 1, 2)), "readout"]
    plain = r.random() < 0.25  # no powers between maps and what reads them
    drawn = r.random() < 0.5  # all weights are drawn and trained, and of the right size
    for place, kind in enumerate(kinds):
        one = _map(r, kind, f"w{place}", act, optimizer in ("adam", "signsgd"), plain, drawn)
        maps.append(one)
    steps = r.choice((1, 1, 1, 2))
    return Net(tuple(maps), optimizer, steps, r.choice((ONE, ONE, TWO)))


def _map(
    r: Random, kind: str, name: str, act: str, entrywise: bool, plain: bool, drawn: bool
) -> Map:
    right = {"input": Fraction(0), "hidden": -HALF, "readout": Fraction(-1)}[kind]
    size = right + (0 if drawn else r.choice((0, 0, 0, 0, HALF, -HALF)))
    behind = Fraction(0) if plain else r.choice((0, 0, HALF, -HALF, -1, 1))
    number = Fraction(r.choice((1, 1, 1, 2, HALF)))
    zero = not drawn and r.random() < (0.06 if kind == "input" else 0.2)
    init = Power(Fraction(0)) if zero else Power(number, size - behind)
    # an update of this rate adds order one, where gradients are n^(-1) times what stands behind
    rate = {"input": 1, "hidden": 0, "readout": -1}[kind] - entrywise - (2 - entrywise) * behind
    rate += r.choice((0, 0, 0, 0, -HALF, -HALF, -1, HALF))
    norm, bias = r.choice(("none",) * 6 + ("rms", "layer")), None
    if kind != "readout" and r.random() < 0.25:
        start = r.choice((Power(Fraction(0)), Power(Fraction(1), -behind)))
        bias = Weights(start, Power(n=Fraction(1 - entrywise) - (2 - entrywise) * behind))
    return Map(
        name,
        kind,
        init,
        Power(Fraction(r.choice((1, 1, 1, 2, -1, HALF))), behind),
        Power(n=Fraction(rate)),
        norm="none" if kind == "readout" or zero else norm,
        act="identity" if kind == "readout" else act,
        bias=bias,
        frozen=not drawn and kind != "readout" and r.random() < 0.15,
    )


def subject(seed: int, case: Case) -> Subject:
    """What is said of a network, and networks of numbers of coordinates."""
    own = net(seed)
    query = len(own.data)
    said = []
    found = case.ask("check", lambda: tp.check(own.run))
    if found is not None:
        said += list(_verdict(found, own))
    written = case.ask("program", lambda: own.run.program)
    if written is not None:
        said += claims(written, case)
    sizes = case.ask("orders", lambda: tp.orders(own.run))
    if found is not None and sizes is not None:
        large = _grows(found, sizes)
        said = [one for one in said if one[0].startswith("dW_x[") or _step(one[0]) < large]
    solved, at_rates = case.ask("solve", lambda: tp.solve(own.run.replace(steps=1))), None
    if solved is not None and solved.steps:
        at_rates = _with(own, solved)
        said += list(_solved(solved, at_rates, query))

    def numbers(wanted: set[str], level: int) -> dict[str, Pair]:
        made: dict[str, Pair] = {}
        for prefix, one in (("", own), ("solve ", at_rates)):
            names = [name for name in wanted if name.startswith("solve ") == bool(prefix)]
            if one is not None and names:
                made.update(_networks(one, level, seed, prefix))
        return made

    return Subject(said, numbers)


def _step(name: str) -> int:
    """The step of an output: ``f[1,0]``, ``x[w0,1,0]``; of a change the later one."""
    found = re.search(r"[,\[](\d+)[,\]]", name)
    return int(found[1]) if found else 0


def _grows(found: Verdict, sizes: tp.Orders) -> int:
    """The first step where an update or a slope is of a larger power than at the start.

    What it adds is small next to the start at every width that can be run.
    """
    powers = {
        row.name: row.n.constant or Fraction(0) for row in found.updates if row.n.exact is not None
    }
    large = [_step(name) for name, power in powers.items() if power > 0]
    for name, order in sizes.items():
        if name.startswith("dx[") and order.n is not None:
            start = sizes[re.sub(r",\d+,", ",0,", name)]
            if start.n is not None and order.n.at({}) > start.n.at({}):
                large.append(_step(name))
    return min(large, default=found.steps + 1)


def _with(own: Net, found: Solution) -> Net:
    """The network at the rates that were found."""
    rates = dict(_rates(found))
    maps = tuple(
        replace(one, rate=Power(n=-Fraction(rates[one.name]))) if one.name in rates else one
        for one in own.maps
    )
    return replace(own, maps=maps, steps=1)


def _rates(found: Solution) -> Iterator[tuple[str, str]]:
    """The powers of the maps whose update at the first step is not 0 whatever they are."""
    for name, power in zip(found.names, found.steps[0].c, strict=True):
        if power != "any":
            yield name, power


# ------------------------------------------------------------------------------- what is said


def _verdict(found: Verdict, own: Net) -> Iterator[Named]:
    query = len(own.data)
    for row in (*found.outputs, *found.updates):
        yield from _row(row)
    for layer in found.layers:
        name = f"dW_x[{layer.name},{{}},{query}]"
        text = f"{layer.name} {layer.weights}: {layer.reason}"
        steps = [layer.step] if layer.moves and layer.step else range(1, found.steps + 1)
        for step in steps:
            if layer.weights == "moves":
                yield name.format(step), text, Size(0, upper=False, lower=True)
            elif (
                not layer.moves
                and layer.weights in ("vanishes", "frozen", "cut off", "0")
                and not found.exploded
            ):
                yield name.format(step), text, Size(VANISHES, upper=True)


def _row(row: OrderRow) -> Iterator[Named]:
    text = f"check: {row.n} {row.status} {row.reason}"
    if row.n.is_zero:
        yield row.name, text, Zero()
    elif row.n.constant is not None:
        yield row.name, text, Size(float(row.n.constant), row.status != "exact")


def _solved(found: Solution, own: Net, query: int) -> Iterator[Named]:
    """At the rates that were found every map moves what reads it, and no output grows."""
    text = f"c = {found.steps[0].c}"
    yield f"solve f[1,{query}]", text, Size(0, upper=True)
    for name, _ in _rates(found):
        notes = [note for note in found.notes if name in re.split(r"[\s:,]+", note)]
        power = re.search(r"contributes n\^\(([^()]*)\)", " ".join(notes))
        size = float(Fraction(power[1])) if power else 0.0
        yield f"solve dW_x[{name},1,{query}]", f"{text} {notes}", Size(size, upper=False)


# ----------------------------------------------------------------------------------- numbers


def _networks(own: Net, level: int, seed: int, prefix: str) -> Mapping[str, Pair]:
    from tests.fuzz.explicit import Explicit, Rule, measured

    def one(width: int, index: int) -> dict[str, tuple[float, float]]:
        drawn = Explicit(width, 1, 10_000 * level + 100 * seed + index, own.frozen)
        rule = Rule(own.optimizer)
        return measured(drawn, own.forward, own.data, rule, own.steps, query=QUERY)

    return paired(
        {width: [one(width, k) for k in range(count)] for width, count in WIDTHS[level]}, prefix
    )
