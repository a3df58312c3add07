"""Random blocks that are repeated L times: powers of L against blocks that are written out.

The start is compared with streams of infinite width up to a thousand blocks, training with
networks of explicit weights, and limits at a number of blocks (``tp.at_depth``) with the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

import tpcalc as tp
from tests.fuzz.claims import Case, Named, Subject, claims
from tests.fuzz.judge import Pair, Size, Zero, paired
from tests.fuzz.written import RATE, Forward, Power, Reading, Weights, network
from tpcalc.results import OrderRow, Verdict

__all__ = ["Block", "block", "numbers", "said", "subject"]

ACTS = ("relu", "relu", "tanh", "tanh", "gelu", "sin", "identity", "abs", "cos")
HALF = Fraction(1, 2)
STILL = frozenset({"emb", "read"})
DATA = tp.Samples(((1.0, 0.5),), ((1.0,),))
FEW = 3  # blocks of the runs whose limits are taken
START = ((16, 128), (128, 1024))  # blocks
FEWER = ((8, 32), (32, 128))  # where what grows by factors is in the range of floats
STREAMS = 12
TRAINED = ((8, 32), 192), ((32, 128), 512)  # blocks and the width
NETWORKS = 6
WIDTHS = (((96, 32), (384, 16)), ((384, 48), (1536, 24)))  # and how many networks of a few blocks
COORDINATES = 768
NEAR = 0.05  # slopes of real powers, where their formulas are numbers
VANISHES = -0.25  # at least so fast what is said to vanish does


@dataclass(frozen=True)
class Block:
    """What a block does: skip * h + pull(h) + front * maps(norm(h)), and a norm of all of it.

    Args:
        skip: What the stream is multiplied by; 0: it is not kept.
        pull: In front of the stream, or of a function of it, that is added besides; and which.
        front: In front of what is added.
        acts: For each map the activation before it; the last one stands behind all.
        norms: For each map the norm before its activation; the last one behind all of the block.
        zeros: For each map whether it starts at 0.
        bias: Of the last map: ``""`` none, ``"zero"``, or ``"drawn"``.
        named: Whether powers of n are those of the name mup.
        optimizer: Its name.
        steps: 0 or 1.
        gamma: The power of L of updates; None: rates do not know of L.
    """

    skip: Power
    pull: tuple[Power, str]
    front: Power
    acts: tuple[str, ...]
    norms: tuple[str, ...]
    zeros: tuple[bool, ...]
    bias: str
    named: bool
    optimizer: str
    steps: int
    gamma: str | None

    def __call__(self, o: Reading, h: Any) -> Any:
        """The block, in a reading."""
        x = h
        for place, zero in enumerate(self.zeros):
            x = o.act(self.acts[place], o.norm(self.norms[place], x))
            last = place == len(self.zeros) - 1
            start = Power(Fraction(0)) if zero else Power(n=-HALF)
            weights = Weights(start, self.rate("hidden"))
            x = o.linear(f"w{place}", "hidden", x, weights, self.shift if last else None)
        x = o.times(self.front, o.act(self.acts[-1], x))
        for power, act in ((self.skip, "identity"), self.pull):
            if power.number:
                y = o.act(act, h)
                x = x + (y if power == Power() else o.times(power, y))
        return o.norm(self.norms[-1], x)

    @property
    def entrywise(self) -> bool:
        """Whether updates do not know of the size of gradients."""
        return self.optimizer in ("adam", "signsgd")

    def rate(self, kind: str) -> Power:
        """The powers of mup."""
        power = {"input": 1, "hidden": 0, "readout": -1, "bias": 1}[kind]
        return Power(n=Fraction(power - self.entrywise))

    @property
    def shift(self) -> Weights | None:
        """The bias of the last map."""
        number = Fraction(self.bias == "drawn")
        return Weights(Power(number), self.rate("bias")) if self.bias else None

    @property
    def forward(self) -> Forward:
        """A network of L blocks."""

        def net(o: Reading, x: Any) -> Any:
            h = o.linear("emb", "input", x, Weights(Power(), self.rate("input")))
            o.watch("first", h)
            h = o.repeat(h, lambda h: self(o, h))
            o.watch("last", h)
            return o.linear(
                "read", "readout", h, Weights(Power(n=Fraction(-1)), self.rate("readout"))
            )

        return net

    @property
    def run(self) -> Any:
        """Its training, L a symbol."""
        param = "mup" if self.named else "own"
        return tp.Training(
            network(self.forward, self.named),
            param,
            DATA,
            steps=self.steps,
            optimizer=self.optimizer,
            lr=RATE,
            groups={name: {"lr": 0} for name in STILL},
            lr_depth=self.gamma,
            watch=("x", "dx"),
        )


def block(seed: int) -> Block:
    """The block of a seed."""
    r = Random(f"blocks {seed}")
    maps = r.choice((1, 1, 2))
    act = r.choice(ACTS)
    before = r.random() < 0.6  # activations stand before maps, or behind them
    acts = [act if before or place else "identity" for place in range(maps)]
    acts.append("identity" if before else act)
    norms = [r.choice(("none", "none", "rms", "layer"))]
    norms += [r.choice(("none", "none", "none", "rms", "layer")) for _ in range(maps - 1)]
    norms.append(r.choice(("none", "none", "none", "none", "rms", "layer")))
    zeros = [r.random() < 0.04 and norms[1] == "none" for _ in range(maps - 1)]
    zeros.append(r.random() < 0.15)
    skips = [Power()] * 12 + [
        Power(Fraction(number)) for number in (0, 0, HALF, "3/5", -1, "6/5", 2)
    ]
    skips += [Power(Fraction(-1, 2)), Power(L=-HALF)]
    pulls = [Fraction(0)] * 6 + [Fraction(1), Fraction(-1), Fraction(-1, 2)]
    pull = Power(r.choice(pulls), L=-Fraction(r.choice((1, 1, HALF))))
    return Block(
        skip=r.choice(skips),
        pull=(pull, r.choice(("identity", "identity", "tanh", "relu"))),
        front=Power(
            Fraction(r.choice((1, 1, 1, "4/5", HALF, -2))),
            L=-Fraction(r.choice((0, 0, HALF, HALF, HALF, 1, 1, "3/4"))),
        ),
        acts=tuple(acts),
        norms=tuple(norms),
        zeros=tuple(zeros),
        bias=r.choice(("",) * 5 + ("zero", "drawn")),
        named=r.random() < 0.5,
        optimizer=r.choice(("sgd", "sgd", "sgd", "adam", "signsgd")),
        steps=r.choice((0, 1)),
        gamma=r.choice((None, None, None, "0", "1/2", "1")),
    )


def subject(seed: int, case: Case) -> Subject:
    """What is said of a block, and streams and networks of numbers of blocks."""
    own = block(seed)
    found = case.ask("check", lambda: tp.check(own.run))
    told = [] if found is None else list(said(found, own))
    few = case.ask("at_depth", lambda: tp.at_depth(own.run, FEW).program)
    if few is not None:
        told += claims(few, case)
    return Subject(told, lambda wanted, level: numbers(own, found, wanted, level, seed))


# ------------------------------------------------------------------------------- what is said


def said(found: Verdict, own: Block) -> Iterator[Named]:
    """The sizes that a verdict gives, at the start and after an update."""
    for name, became in (("x", found.outputs), ("dx", found.gradients)):
        if became in ("stationary", "identity"):
            yield name, f"{name}[0] {became}", Size(0, upper=False)
        rows = [row for row in found.rows if row.name == f"{name}[0]" and "n^" not in row.part]
        if any(row.part for row in rows):
            yield from _parts(f"D{name}", rows)
        else:
            for row in rows:
                yield from _whole(name, row)
    if own.steps and found.stable_start:
        yield from _training(found)


def _whole(name: str, row: OrderRow) -> Iterator[Named]:
    """The size of all of it."""
    text, upper = f"{row.name} {row.size} {row.status}", row.status == "bound"
    if row.real is not None:
        yield name, f"{text} {row.real.formula}", Size(row.real.value.value, upper, drift=NEAR)
    elif row.form == "power":
        yield name, text, Size(_power(row), upper)
    else:
        yield f"log {name}", text, Size(_power(row), upper)
        yield name, text, Size(0, upper=row.form == "shrinks", lower=row.form == "grows")


def _parts(name: str, rows: list[OrderRow]) -> Iterator[Named]:
    """The largest of them is the size, unless there are bounds above it."""
    text = "; ".join(f"{row.name} {row.part} {row.size} {row.status}" for row in rows)
    equal = max((_power(row) for row in rows if row.status != "bound"), default=None)
    bound = max((_power(row) for row in rows if row.status == "bound"), default=None)
    if bound is not None and (equal is None or bound > equal):
        yield name, text, Size(bound, upper=True)
        if equal is not None:
            yield name, text, Size(equal, upper=False, lower=True)
    elif equal is not None:
        yield name, text, Size(equal, upper=False)


def _power(row: OrderRow) -> float:
    return -math.inf if row.L.is_zero else float(row.L.constant or 0)


def _training(found: Verdict) -> Iterator[Named]:
    """What the first update of all blocks does to the stream and to the output."""
    last, output = "L x[last,1,0]-x[last,0,0]", "L f[1,0]-f[0,0]"
    drifts = [row for row in found.rows if row.name == "x[1]" and "dx[" in row.part]
    moved = [row for row in drifts if "odd in dx:" in row.part]
    for name, rows, moves in ((last, drifts, found.features), (output, moved, found.moves)):
        yield from _parts(name, rows)
        if moves is False:
            yield name, f"does not move: {'; '.join(found.facts)}", Size(VANISHES, upper=True)
    text = "; ".join(found.facts)
    if "do not add up to anything in the stream" in text:
        yield last, text, Zero()
    if "add up to a power of L in the output" in text:
        yield output, text, Size(0, upper=False, lower=True)


# ----------------------------------------------------------------------------------- numbers


def numbers(
    own: Block, found: Verdict | None, wanted: set[str], level: int, seed: int
) -> dict[str, Pair]:
    """Streams and networks of a block, under the names of what is said.

    Args:
        own: The block.
        found: The verdict, which says how rates depend on L.
        wanted: The names.
        level: ``SMALL`` or ``BIG``.
        seed: Of all draws.
    """
    made: dict[str, Pair] = {}
    speed = {rate.label: rate.raw.constant for rate in found.rates} if found else {}
    streams = {name for name in wanted if "[" not in name}
    logs = {name for name in streams if name.startswith("log")}
    for names, depths in ((streams - logs, START[level]), (logs, FEWER[level])):
        if names:
            made.update(_streams(own, names, depths, seed))
    if any(name.startswith("L ") for name in wanted):
        depths, width = TRAINED[level]
        deep = {depth: _networks(own, width, depth, NETWORKS, seed, speed) for depth in depths}
        made.update(paired(deep, "L "))
    if any("[" in name and not name.startswith("L ") for name in wanted):
        wide = {
            width: _networks(own, width, FEW, count, seed, speed) for width, count in WIDTHS[level]
        }
        made.update(paired(wide))
    return made


def _streams(own: Block, names: set[str], depths: tuple[int, int], seed: int) -> dict[str, Pair]:
    from tests.fuzz.explicit import ladder

    def squares(depth: int) -> dict[str, Any]:
        return ladder(own, depth, seed + 1, STREAMS, COORDINATES)

    found = {}
    for depth in depths:
        values = squares(depth)
        if any(name.startswith("log") for name in names):
            half = squares(depth // 2)  # a power of L beside what grows by factors cancels
            with np.errstate(all="ignore"):
                values |= {f"log {name}": np.log(values[name] / half[name]) ** 2 for name in values}
        found[depth] = [
            {name: (0.0, float(values[name][place])) for name in names} for place in range(STREAMS)
        ]
    return paired(found)


def _networks(
    own: Block, width: int, depth: int, count: int, seed: int, speed: dict[str, Fraction]
) -> list[dict[str, tuple[float, float]]]:
    from tests.fuzz.explicit import Explicit, Rule, measured

    factors = {name: float(depth) ** float(power) for name, power in speed.items()}
    return [
        measured(
            Explicit(width, depth, 1000 * seed + index, STILL),
            own.forward,
            DATA,
            Rule(own.optimizer),
            own.steps,
            speed=factors,
        )
        for index in range(count)
    ]
