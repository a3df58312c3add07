"""Blocks that are repeated along the depth: what a program may and may not say of them."""

from __future__ import annotations

import pytest

import tpcalc as tp
from tpcalc.errors import ProgramError, TraceError, UsageError

HEAD = "tpcalc program 2\ndim n 1\ndim m 2\nfamily x : n\n"
MATRIX = 'family "W{l}" : n*n along fresh\n'
DEEP = (
    HEAD
    + MATRIX
    + """%0 : n = input x
%1 : n = carry %0 over l:L
%2 : n*n = input "W{l}"
%3 : n = matmul %2 %1
%4 : n = scale %3 n^(-1/2) L^(-1/2)
%5 : n = sum 1*%1 + 1*%4
%6 : n = repeat %1 to %5
%7 : () = moment {x0**2} (%6)
output q %7
output h %3
"""
)


def test_a_block_reads_back_and_is_written_out() -> None:
    program = tp.parse(DEEP)
    assert str(program) == DEEP and len(program.repeats) == 1
    flat = tp.at_depth(program, 2)
    assert list(flat.families) == ["x", "W1", "W2"]
    assert [name for name, _ in flat.outputs] == ["q", "h[1]", "h[2]"]


@pytest.mark.parametrize("depth", [1, 4, 64])
def test_S1_9_A1_norm_of_a_linear_stream(depth: int) -> None:
    found = tp.limit(tp.at_depth(tp.parse(DEEP), depth))["q"]
    assert found.value == pytest.approx((1 + 1 / depth) ** depth, rel=1e-12)


def test_a_count_needs_no_depth() -> None:
    text = DEEP.replace("l:L", "l:3").replace(" L^(-1/2)", "")
    assert tp.limit(tp.at_depth(tp.parse(text)))["q"].value == pytest.approx(8.0)


def test_readings_ask_for_a_depth() -> None:
    with pytest.raises(ProgramError, match=r"repeats a block.*tp\.at_depth"):
        tp.limit(tp.parse(DEEP))
    with pytest.raises(ProgramError, match="the depth L is a symbol"):
        tp.at_depth(tp.parse(DEEP))
    with pytest.raises(UsageError, match="depth is 0"):
        tp.at_depth(tp.parse(DEEP), 0)


BAD = {
    "changes the dimension": (
        "family V : m*n along fresh\n%0 : n = input x\n%1 : n = carry %0 over l:L\n"
        "%2 : m*n = input V\n%3 : m = matmul %2 %1\n%4 : n = repeat %1 to %3\n",
        "a repetition takes n .* and gives m",
    ),
    "is never closed": (
        "%0 : n = input x\n%1 : n = carry %0 over l:L\noutput x %1\n",
        "has no end",
    ),
    "stands in a block": (
        "%0 : n = input x\n%1 : n = carry %0 over l:L\n%2 : n = carry %1 over k:2\n",
        "repeated inside",
    ),
    "draws outside": (
        MATRIX + '%0 : n = input x\n%1 : n*n = input "W{l}"\n',
        "outside of a repeated block",
    ),
    "leaks": (
        "%0 : n = input x\n%1 : n = carry %0 over l:L\n%2 : n = map {tanh(x0)} (%1)\n"
        "%3 : n = repeat %1 to %2\n%4 : n = sum 1*%2 + 1*%3\n",
        "one repetition of the block",
    ),
    "closes another": (
        "%0 : n = input x\n%1 : n = repeat %0 to %0\n",
        "is not the carry",
    ),
    "is repeated 0 times": ("%0 : n = input x\n%1 : n = carry %0 over l:0\n", "cannot be read"),
    "has no law along the depth": (
        "family U : n along often\n",
        "no law 'often' along the depth",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_block_that(what: str) -> None:
    text, message = BAD[what]
    with pytest.raises(ProgramError, match=message):
        tp.parse(HEAD + text)


def test_the_dsl_writes_loops_and_symbols_alike() -> None:
    def deep(depth: int | str) -> tp.Program:
        @tp.program
        def net(t):
            def block(layer, x):
                return x + tp.n ** "-1/2" * (t.matrix(f"W{layer + 1}") @ tp.tanh(x))

            t.output("q", t.moment(t.repeat(depth, t.gaussian("x"), block) ** 2))

        return net.build()

    loop, symbol = deep(3), tp.at_depth(deep("L"), 3)
    assert symbol == tp.at_depth(deep(tp.L), 3)
    assert set(loop.nodes[:2]) <= set(symbol.nodes) and loop.families == symbol.families
    assert tp.limit(loop)["q"].value == pytest.approx(tp.limit(symbol)["q"].value, rel=1e-14)


@pytest.mark.parametrize("depth", [0, -1, "many", 1.5])
def test_a_depth_that_is_none(depth: object) -> None:
    with pytest.raises(TraceError, match="repeated"):
        tp.program(
            lambda t: t.output("x", t.repeat(depth, t.gaussian("x"), lambda layer, x: x))
        ).build()


def test_a_block_in_the_dsl_keeps_its_dimension() -> None:
    @tp.program
    def net(t):
        t.dim("m", 2)
        x = t.gaussian("x")
        t.output("x", t.repeat("L", x, lambda layer, x: t.matrix("V", "m", "n") @ x))

    with pytest.raises(TraceError, match=r"takes a vector on 'n' and returns .* on 'm'"):
        net.build()


@pytest.mark.parametrize(
    "kwargs", [{}, {"nonlin": "post"}, {"nonlin": "post", "center": True}, {"layers": 2}]
)
def test_residual_networks_of_a_number_and_of_the_symbol_agree(kwargs: dict) -> None:
    from tpcalc.networks.network import traced

    symbol = tp.at_depth(traced(tp.ResNet("L", "tanh", bias_variance=1, **kwargs), 2, 1), 4)
    number = traced(tp.ResNet(4, "tanh", bias_variance=1, **kwargs), 2, 1)
    marks = [
        [(one.mark.role, one.mark.layer) for one in net.families.values() if one.mark]
        for net in (symbol, number)
    ]
    assert marks[0] == marks[1]
    names = [{name for name, _ in net.outputs if name[0] in "hx"} for net in (symbol, number)]
    ends = {"h[5]", "x[5]", "h[out]", "x[out]"}
    assert names[0] - ends == names[1] - ends
