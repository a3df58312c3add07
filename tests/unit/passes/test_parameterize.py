"""Parameterizations written out: random networks against their weights times powers of n."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from block_run import named
from block_run import run as run_blocks
from hypothesis import event, given, settings
from hypothesis import strategies as st
from numpy_run import draw as drawn
from numpy_run import run

import tpcalc as tp
from tpcalc.exponents import Ex, as_ex
from tpcalc.networks.layers.norms import layer_norm, rms_norm
from tpcalc.networks.network import Architecture, slots, written
from tpcalc.networks.tracer import NetworkTracer
from tpcalc.passes.parameterize import parameterized
from tpcalc.passes.split import split
from tpcalc.program.family import Mark
from tpcalc.program.nodes import Data, Input, Node, Scale
from tpcalc.program.program import Program
from tpcalc.training.parameterizations import lookup
from tpcalc.training.written import template_of

WIDTH = 5
ROW = (0.5, -1.0, 0.75)
HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Grown(Architecture):
    """A network whose layers are numbers: what to do, and on which of what is there."""

    steps: tuple[tuple[int, int, int, bool], ...]
    biased_readout: bool
    places: int
    finite: bool
    words: str = field(default="a random network", init=False)

    def forward(self, t: NetworkTracer, x: Any) -> Any:
        m, into = t.dim("m", 2), "in"
        if self.finite:  # two layers of finite size
            x = tp.tanh(t.linear(2, "in", True)(x))
            x, into = t.linear(4, "in")(x.renamed(out="in")), "out"
        vectors = {"n": [t.linear(t.n, into, True)(x)], m: [t.linear(m, into)(x)]}
        maps: list[Any] = []
        for kind, i, j, flag in self.steps:
            dim = m if flag else "n"
            here, there = vectors[dim], vectors["n" if flag else m]
            v, w = here[i % len(here)], here[j % len(here)]
            made = STEPS[kind](t, v, w, there, maps, dim, m)
            vectors[made.dim].append(made)
        read = t.linear(t.outputs, t.n, self.biased_readout)
        outputs = [t.linear(t.outputs, m)(reduce(add, vectors[m]))]
        outputs += [read(v) for v in (reduce(add, vectors["n"]), vectors["n"][0])[: self.places]]
        return outputs if self.places > 1 else outputs[0] + outputs[1]


def _map(t: Any, v: Any, w: Any, there: Any, maps: list[Any], dim: str, m: str) -> Any:
    maps.append((t.linear(t.n, dim, bias=dim == m), dim))
    return maps[-1][0](v)


def _again(t: Any, v: Any, w: Any, there: Any, maps: list[Any], dim: str, m: str) -> Any:
    fitting = [one for one, into in maps if into == dim]
    return fitting[-1](w) if fitting else tp.tanh(w)


def _tied(t: Any, v: Any, w: Any, there: Any, maps: list[Any], dim: str, m: str) -> Any:
    on_n = v if dim == "n" else there[-1]
    return maps[-1][0].T(on_n) if maps else tp.tanh(v)


STEPS: list[Callable[..., Any]] = [
    _map,
    _again,
    _tied,
    lambda t, v, w, *_: tp.tanh(v + w),
    lambda t, v, w, *_: tp.tanh(v) * w,
    lambda t, v, w, *_: v - HALF * w,
    lambda t, v, w, *_: layer_norm(v, eps=1),
    lambda t, v, w, *_: rms_norm(w, eps=HALF),
    lambda t, v, w, *_: t.inner(v, tp.tanh(w)) * w,
    lambda t, v, w, there, maps, dim, m: t.vector(dim=dim) * tp.tanh(v),
]


@st.composite
def networks(draw: st.DrawFn) -> Grown:
    step = st.tuples(
        st.integers(0, len(STEPS) - 1), st.integers(0, 5), st.integers(0, 5), st.booleans()
    )
    return Grown(
        tuple(draw(st.lists(step, max_size=7))),
        draw(st.booleans()),
        draw(st.integers(1, 2)),
        draw(st.booleans()),
    )


EXPONENTS = st.sampled_from([as_ex(e) for e in (0, 0, HALF, 1, -HALF)])
MEANS = st.sampled_from([0, 0, 1, Fraction(-3, 2), 0.25])


@settings(max_examples=60, deadline=None)
@given(networks(), st.integers(1, 2), st.data())
def test_a_network_parameterized_is_the_network_of_scaled_weights(
    net: Grown, outputs: int, data: st.DataObject
) -> None:
    program = written(net, len(ROW), outputs)
    powers = {one: data.draw(EXPONENTS) for one in marks(program)}
    means = {one: 0 if one.bias else data.draw(MEANS) for one in marks(program)}
    event(f"{sum(mean != 0 for mean in means.values()) > 0} means")
    compared(net, program, powers, means)


# By the numbers of STEPS: a map, an average with its product, a map and its transpose of that.
FIXED = Grown(
    ((0, 0, 0, False), (8, 1, 0, False), (0, 2, 0, True), (2, 2, 0, False)), True, 2, True
)


@pytest.mark.parametrize("power", [as_ex(HALF), as_ex(1)])
@pytest.mark.parametrize("mean", [0, Fraction(1, 3)])
def test_powers_are_carried_by_averages_and_their_multiples(power: Ex, mean: Fraction) -> None:
    program = written(FIXED, len(ROW), 2)
    powers = {one: power for one in marks(program)}
    compared(FIXED, program, powers, {one: 0 if one.bias else mean for one in marks(program)})


def compared(
    net: Grown, program: Program, powers: Mapping[Mark, Ex], means: Mapping[Mark, Any]
) -> None:
    """The parameterized program, and the network itself on scaled and shifted weights."""
    template = split(parameterized(program, powers.__getitem__, means.__getitem__))
    for family in template.families.values():
        if family.mark is not None and len(family.width) < 2:
            assert set(family.means) == {means[family.mark]}
    rng = np.random.default_rng(0)
    inputs = drawn(template, WIDTH, rng)
    ours = run(template, WIDTH, inputs | dict(zip(slots(net, len(ROW)), ROW, strict=True)))
    scaled: dict[str, Any] = {}
    for family in program.families.values():
        assert family.mark is not None
        factor = float(WIDTH) ** -float(powers[family.mark].constant or 0)
        for cell in range(family.size) if family.axes else [None]:
            own = named(family, cell)
            start = inputs.get(own, 0.0)  # not in the template where it has no effect
            if len(family.width) == 2:  # the mean of a matrix is written beside its product
                start = start + float(means[family.mark])
            scaled[own] = factor * start
    wanted = run_blocks(filled(program), WIDTH, scaled)
    assert list(wanted) == list(ours)
    for name, value in wanted.items():
        size = max(1.0, float(np.max(np.abs(value))))
        np.testing.assert_allclose(ours[name], value, rtol=1e-7, atol=1e-9 * size, err_msg=name)


def marks(program: Program) -> tuple[Mark, ...]:
    return tuple(f.mark for f in program.families.values() if f.mark is not None)


def filled(program: Program) -> Program:
    """The program with the input in its slot."""

    def with_values(node: Node) -> Node:
        slot = isinstance(node, Data) and not node.values
        return replace(node, values=ROW) if slot else node

    return replace(program, nodes=tuple(map(with_values, program.nodes)))


def scales(program: Program) -> list[Ex]:
    return [node.n_power for node in program.nodes if isinstance(node, Scale)]


@pytest.mark.parametrize(
    ("net", "name", "found"),
    [
        # Once for W x + b in each hidden layer where both have one power; n^(1 - a) E[v x].
        (tp.MLP(3, "tanh", "all"), "ntk", {"-1/2": 2, "1/2": 1}),
        (tp.MLP(3, "tanh"), "ntk", {"-1/2": 2, "1/2": 1}),
        (tp.MLP(3, "tanh", "hidden"), "mup", {"-1/2": 2}),
        (tp.MLP(3, "tanh"), "naive-ip", {"-1": 2}),
        (tp.MLP(3, "tanh", "all"), "naive-ip", {"-1": 3}),
        (tp.ResNet(3, "tanh"), "ntk", {"-1/2": 3, "1/2": 1}),
        (tp.RNN(3, "tanh", bias_variance=2), "ntk", {"-1/2": 2, "1/2": 1}),
        (tp.RNN(3, "tanh", outputs="all"), "naive-ip", {"-1": 2}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_power_is_written_once(net: Architecture, name: str, found: Mapping[str, int]) -> None:
    template = template_of(net, lookup(name), 3, 1)
    powers = list(map(str, scales(template.program)))
    assert {power: powers.count(power) for power in powers} == dict(found)
    # None stands on another, and no sum is scaled term by term.
    for node in template.program.nodes:
        if isinstance(node, Scale):
            assert not isinstance(template.program.nodes[node.of], Scale)


def test_parameters_keep_their_marks() -> None:
    program = written(tp.MLP(2, "tanh", "all", variances="initial", weight_variance=4), 2, 3)
    found = parameterized(program, lambda mark: as_ex(mark.layer))
    assert found.families == program.families
    assert [mark.start for mark in marks(found) if not mark.bias] == [2, 2, 1]


def test_a_mean_is_in_units_of_the_start() -> None:
    """The factor in front of weights multiplies their mean too, where it is their deviation."""
    program = written(tp.MLP(1, "tanh", variances="initial", weight_variance=4), 2, 1)
    for row, wanted in (({1: 3}, (1.5, 1.5)), ({2: 3}, ())):
        found = parameterized(
            program, lambda mark: as_ex(0), lambda mark, row=row: row.get(mark.layer, 0)
        )
        assert found.families["W1"].mean == wanted


def test_unmarked_inputs_are_left_alone() -> None:
    @tp.program
    def plain(t: tp.Tracer) -> None:
        h = t.matrix("W") @ tp.tanh(t.gaussian("g"))
        t.output("f", tp.n**HALF * t.inner(h, t.gaussian("v", mean=1)))

    program = plain.build()
    assert parameterized(program, lambda mark: as_ex(1), lambda mark: 1) == program
    assert not any(isinstance(node, Input) and node.family.mark for node in program.nodes)
