"""First steps: bounds that hold, the same in cells and blocks, derivatives, and every gauge."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from properties.test_orders import STEPS, Step, program_of

import tpcalc as tp
from tests import networks_in_use as used
from tests import numpy_run
from tests.fuzz.programs import NETWORKS, build
from tpcalc.errors import Exploded, ScaleError, TpcalcError
from tpcalc.passes.split import split
from tpcalc.program.nodes import Ref
from tpcalc.program.program import Builder, Program
from tpcalc.questions.start.bounds import StartSizes
from tpcalc.questions.start.moves import Sizes
from tpcalc.training.training import Training

HALF = Fraction(1, 2)


# ------------------------------------------------------------------------------------- bounds


def below(program: Program) -> list[str]:
    """Outputs that are larger than their bounds."""
    sizes = StartSizes(Builder.copy(program), {})
    found = tp.orders(program, verify=False)
    wrong = []
    for name, ref in program.outputs:
        bound, order = sizes.size(ref), found[name]
        if order.zero or order.n is None or order.status != "exact":
            continue
        assert order.n.constant is not None
        if bound is None or bound < order.n.constant:
            wrong.append(f"{name} is {order!r}, its bound {bound}")
    return wrong


def check_bounds(steps: Sequence[Step]) -> None:
    program = program_of(steps)
    try:
        wrong = below(program)
    except (ScaleError, Exploded):
        assume(False)
    assert not wrong, "\n".join(wrong)


@settings(max_examples=25)
@given(STEPS)
def test_bounds_hold_what_is_exact(steps: list[Step]) -> None:
    check_bounds(steps)


@pytest.mark.slow
@settings(max_examples=400)
@given(STEPS)
def test_bounds_hold_what_is_exact_in_more_programs(steps: list[Step]) -> None:
    check_bounds(steps)


@pytest.mark.parametrize("family", sorted(NETWORKS))
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 9))]
)
def test_bounds_hold_in_random_networks(family: str, seed: int) -> None:
    program = build(family, seed)
    try:
        wrong = below(split(program))
    except TpcalcError:
        pytest.skip("no orders there")
    assert not wrong, "\n".join(wrong)


# --------------------------------------------------------------------------- cells and blocks

NETS = {
    "gpt": tp.network(used.with_tokens(used.GPT, 2)),
    "mixer": tp.network(used.with_tokens(used.Mixer, 2)),
    "moe": tp.network(used.MoE),
    "lstm": tp.network(used.with_tokens(used.Lstm, 2)),
    "mamba": tp.network(used.with_tokens(used.Mamba, 2)),
    "zero head": tp.network(used.MoE, head="0"),
}


@pytest.mark.parametrize("name", sorted(NETS))
def test_blocks_have_the_sizes_of_their_cells(name: str) -> None:
    """What gradients of two passes are made of; other adjoints hold their cells at least.

    A cell of its own may be identically 0, as the derivative of a softmax of one number is.
    """
    found = Sizes.of(Training(NETS[name], "mup", optimizer="adam"), {})
    whole = Builder.copy(found.steps.builder.finish())
    asked, equal = set[Ref](), set[Ref]()
    for own in found.passes[:2]:
        asked |= set(own.gradients.adjoints.values())
        for ref in found.steps.parameters:
            gradient = own.gradients.of(own.new[ref])
            pairs = gradient if isinstance(gradient, tuple) else ((gradient,),)
            equal |= {ref for pair in pairs for ref in pair if ref is not None}
    for ref in asked | equal:
        whole.output(f"v{ref}", ref)
    cells = split(whole.finish())
    sizes = StartSizes(Builder.copy(cells), {})
    largest: dict[Ref, float] = {}
    for cell, ref in cells.outputs:
        block, size = int(cell.partition("[")[0][1:]), sizes.size(ref)
        largest[block] = max(largest.get(block, -inf), -inf if size is None else size)
    for ref, size in largest.items():
        bound = found.bounds.size(ref)
        own = -inf if bound is None else bound
        assert own >= size and (own == size or ref not in equal), whole.node(ref)


# ---------------------------------------------------------------------------------- derivatives

WIDTH, STEP = 32, 1e-4
Weights = dict[str, Any]


def small(biased: bool) -> tp.Architecture:
    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = tp.tanh(t.linear(t.n, "in", biased, name="u", init=1)(x))
        h = tp.swish(t.linear(t.n, t.n, biased, name="w", init="n^(-1/2)")(h))
        return t.linear(t.outputs, t.n, biased, name="v", init="n^(-1)")(h)

    return net


def forward(w: Weights, x: Any) -> tuple[Any, Any, Any, float]:
    """The same in numpy: both hidden layers, what the second reads, the output."""
    first = np.tanh(w["u"] @ x + w["u.bias"])
    read = WIDTH**-0.5 * (w["w"] @ first) + w["w.bias"]
    second = read / (1 + np.exp(-read))
    return first, read, second, float(np.mean(w["v"] * second) + w["v.bias"])


def gradient(w: Weights, x: Any) -> Weights:
    """The derivatives of the output, by hand."""
    first, read, second, _ = forward(w, x)
    gate = 1 / (1 + np.exp(-read))
    d_read = w["v"] / WIDTH * (gate + read * gate * (1 - gate))
    d_first = WIDTH**-0.5 * (w["w"].T @ d_read) * (1 - first**2)
    return {
        "u": np.outer(d_first, x),
        "u.bias": d_first,
        "w": WIDTH**-0.5 * np.outer(d_read, first),
        "w.bias": d_read,
        "v": second / WIDTH,
        "v.bias": 1.0,
    }


@pytest.mark.parametrize("biased", [False, True])
def test_output_terms_are_derivatives(biased: bool) -> None:
    """What a step of gradient descent adds to the output, by differences of a network in numpy."""
    found = Sizes.of(Training(small(biased), "own", optimizer="sgd"), {})
    moves = found.moves[0]
    names = {ref: node.name for ref, node in found.steps.parameters.items()}
    (output,) = (ref for ref, name in found.read.items() if name == "f")
    changed = found.change_nodes((output, ref) for ref in names)
    whole = Builder.copy(found.steps.builder.finish())
    for ref, name in names.items():
        whole.output(name, changed[output, ref])
    program = split(whole.finish())
    drawn = numpy_run.draw(program, WIDTH, np.random.default_rng(0))
    terms = numpy_run.run(program, WIDTH, drawn)
    x = np.array([float(number) for number in found.steps.inputs[0]])
    weights = {name: drawn.get(f"{name}[0]", 0.0) for name in ("u.bias", "w.bias", "v.bias")}
    weights |= {"u": np.stack([drawn[f"u[{k}]"] for k in range(len(x))], 1), "w": drawn["w"]}
    weights |= {"v": drawn["v[0]"]}
    slopes = gradient(weights, x)
    for ref, name in names.items():
        along = float(WIDTH) ** float(moves[ref].step - moves[ref].gradient) * slopes[name]
        ends = [
            forward(weights | {name: weights[name] + by * along}, x)[-1] for by in (STEP, -STEP)
        ]
        assert terms[name] == pytest.approx((ends[0] - ends[1]) / (2 * STEP), rel=1e-6), name


# -------------------------------------------------------------------------------------- gauges

Layer = tuple[Fraction, Fraction, Fraction]  # powers of n: multiplier, start, rate


def mlp(layers: Sequence[Layer], act: str) -> tp.Architecture:
    """A network of four maps, each with its own powers of n."""
    sides = ("in", "n", "n", "n")

    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = x
        for k, (times, start, rate) in enumerate(layers):
            out = t.n if k + 1 < len(layers) else t.outputs
            own = t.linear(out, sides[k], name=f"w{k}", init=tp.n**start, rates=(tp.n**rate, 1))
            h = tp.n**times * own(h)
            h = getattr(tp, act)(h) if k + 1 < len(layers) else h
        return h

    return net


def said(layers: Sequence[Layer], act: str, optimizer: str) -> tuple[object, ...]:
    found = tp.first_order(mlp(layers, act), "own", optimizer=optimizer, measure=None)
    rows = [(row.output, row.later, row.inside, row.word, row.status) for row in found.rows]
    points = [(own.size, own.change, own.later, own.status) for own in found.points]
    return found.word, found.status, rows, points


def check_gauges(seed: int, optimizer: str) -> None:
    """A power of n moved from the start of weights to a factor in front, and the rate with it."""
    draw = Random(f"gauge {seed}")
    act = draw.choice(("tanh", "relu", "gelu"))
    degree = 1 if optimizer == "sgd" else 0
    layers: list[Layer] = []
    for k in range(4):
        start = -HALF * draw.choice((0, 1) if k == 0 else (1, 1, 2))
        layers.append((Fraction(0), start, -HALF * draw.randrange(0, 3) if k else Fraction(0)))
    moves = [HALF * draw.randrange(-2, 3) for _ in layers]
    other = [
        (times - by, start + by, rate + (1 + degree) * by)
        for (times, start, rate), by in zip(layers, moves, strict=True)
    ]
    assert said(layers, act, optimizer) == said(other, act, optimizer), (layers, moves, act)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(6, 60))]
)
def test_a_gauge_changes_no_word(seed: int, optimizer: str) -> None:
    check_gauges(seed, optimizer)


# ------------------------------------------------------------------------- explicit networks


def attention(t: Any, h: Any, act: Any, own: Any, made: Any) -> Any:
    q, key, v = (own(name)(h) for name in "qkv")
    return h + own("o")(tp.layers.attention(q, key, v, scale="1/sqrt(d)"))


def narrow(t: Any, h: Any, act: Any, own: Any, made: Any) -> Any:
    inner = made("in", 2, t.n)(act(h)).renamed(out="few")
    return h + made("out", t.n, "few")(inner)


BLOCKS: dict[str, Any] = {
    "map": lambda t, h, act, own, made: own("w")(act(h)),
    "residual": lambda t, h, act, own, made: h + own("w")(act(h)),
    "gate": lambda t, h, act, own, made: own("w")(h) * act(own("g")(h)),
    "norm": lambda t, h, act, own, made: tp.layers.LayerNorm(t)(own("w")(h)),
    "quotient": lambda t, h, act, own, made: act(own("w")(h)) / (1 + h * h),
    "softplus": lambda t, h, act, own, made: h * tp.softplus(own("w")(h)),
    "narrow": narrow,
    "attention": attention,
}
ACTS = ("tanh", "relu", "gelu", "sigmoid", "swish", "sin")
EVEN = (Fraction(0), Fraction(0))


def drawn(seed: int) -> tuple[Any, str]:
    """Random blocks whose starts and rates are off by half powers, and an optimizer."""
    draw = Random(f"explicit {seed}")
    optimizer = draw.choice(("adam", "sgd", "momentum", "signsgd", "lion"))
    linear, tokens = optimizer in ("sgd", "momentum"), draw.choice((1, 3))
    blocks = [
        (draw.choice(sorted(BLOCKS)), draw.choice(ACTS), draw.choices((-HALF, 0, 0, 0, HALF), k=2))
        for _ in range(draw.randrange(1, 4))
    ]
    last = draw.choice(((-HALF, Fraction(0)), (Fraction(0), Fraction(0)), (-HALF, HALF)))

    @tp.network(axes={"p": tokens})
    def net(t: Any, x: Any) -> Any:
        def made(name: str, out: Any, into: Any, off: Sequence[Fraction] = EVEN) -> Any:
            wide = int(into is t.n)
            rate = int(not wide or out is not t.n) if linear else -wide
            powers = tp.n ** (off[0] - HALF * wide), (tp.n ** (rate + off[1]), 1)
            return t.linear(out, into, name=name, init=powers[0], rates=powers[1])

        h = made("embed", t.n, "in")(x)
        for k, (kind, act, off) in enumerate(blocks):

            def mine(name: str, out: Any, into: Any, k: int = k, off: Any = off) -> Any:
                return made(f"{name}{k}", out, into, off)

            def own(name: str, mine: Any = mine) -> Any:
                return mine(name, t.n, t.n)

            h = BLOCKS[kind](t, h, getattr(tp, act), own, mine)
        return made("head", t.outputs, t.n, last)(h.at(p=tokens - 1))

    return net, optimizer


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_no_slope_of_explicit_networks_is_above_its_bound(seed: int) -> None:
    """Terms by autograd and changes along steps, of networks that share no code with the bounds."""
    net, optimizer = drawn(seed)
    found = tp.first_order(net, "own", optimizer=optimizer, measure=(64, 256), seeds=12)
    told = [(row.name, row.output, row.measured) for row in found.rows]
    for point in found.points:
        told += [(point.name, point.size, point.start), (point.name, point.change, point.moved)]
    for name, power, size in told:
        if size is not None and size.slope is not None and power.constant is not None:
            assert size.slope - 5 * (size.error or 0) <= float(power.constant) + 0.25, name
