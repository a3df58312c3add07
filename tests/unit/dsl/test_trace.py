"""Traced functions."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from unit.dsl.activations import relu, tanh

from tpcalc.dsl import Traced, Tracer, as_program, extend, n, program
from tpcalc.errors import ScaleError, TraceError, UnknownName
from tpcalc.program.nodes import Data, Family, Input, LinComb
from tpcalc.program.program import Builder, Program


@program
def chain(t: Tracer, depth: int = 2, *, width: str = "n") -> None:
    """A chain of layers."""
    t.dim(width)
    h = t.gaussian("h", dim=width)
    for layer in range(depth):
        h = n**-0.5 * (t.matrix(f"W{layer}", width, width) @ relu(h))
    t.output("h", h)


@program
def needs(t: Tracer, depth: int) -> None:
    t.output("h", depth * t.gaussian("h"))


def test_the_program_is_built_once() -> None:
    assert chain.build() is chain.build()
    assert as_program(chain) is chain.build()
    assert as_program(chain.build()) is chain.build()
    assert chain.build(depth=2) == chain.build()
    assert len(chain.build(depth=3).nodes) == len(chain.nodes) + 4
    assert chain.nodes[0] == Input(Family.group("h", "n", (Fraction(0),)))
    assert chain.build(width="d").nodes[0] == Input(Family.group("h", "d", (Fraction(0),)))


def test_a_traced_function_stands_for_its_program() -> None:
    built = chain.build()
    assert (chain.nodes, chain.outputs, chain.dims) == (built.nodes, built.outputs, built.dims)
    assert chain.ref("h") == built.ref("h")
    assert str(chain) == str(built)
    assert repr(chain) == "<program chain(t, depth, width)>"
    assert chain.__doc__ == "A chain of layers."
    assert chain.__name__ == "chain"
    assert str(needs) == repr(needs) == "<program needs(t, depth)>"


def test_other_attributes_are_not_there() -> None:
    assert not hasattr(chain, "weights")
    with pytest.raises(AttributeError, match="no attribute 'noodles'"):
        chain.noodles  # noqa: B018


def test_only_what_an_output_needs_is_kept() -> None:
    @program
    def wasteful(t: Tracer) -> None:
        x = t.gaussian("x")
        t.gaussian("unused")
        tanh(t.matrix("W") @ x)
        t.output("y", relu(x))

    found = wasteful.build()
    assert len(found.nodes) == len(found.where) == 2
    assert [group.name for group in found.groups] == ["x"]


def test_lines() -> None:
    @program
    def lined(t: Tracer) -> None:
        x = t.gaussian("x")
        y = relu(
            x + 1,
        )
        t.output("z", apply(y))

    def apply(y: Any) -> Any:
        return 2 * y

    first = lined.__wrapped__.__code__.co_firstlineno + 1
    numbers = [first + 1, first + 3, first + 2, apply.__code__.co_firstlineno + 1]
    assert lined.where == tuple(f"test_trace.py:{number}" for number in numbers)


def test_a_program_inside_another() -> None:
    @program
    def inner(t: Tracer, name: str) -> Any:
        return relu(t.gaussian(name))

    @program
    def outer(t: Tracer) -> None:
        t.output("sum", inner(t, "a") + inner(t, name="b"))

    assert isinstance(outer.nodes[-1], LinComb)
    with pytest.raises(TraceError, match=r"inner' is called with the number 3.*inner\.build"):
        inner(3)  # type: ignore[arg-type]


def test_extend() -> None:
    longer = extend(chain, lambda t: t.output("mean", t.mean(t["h"] ** 2)))
    built = chain.build()
    assert longer.nodes[: len(built.nodes)] == built.nodes
    assert longer.where[: len(built.nodes)] == built.where
    assert [name for name, _ in longer.outputs] == ["h", "mean"]
    assert extend(longer, lambda t: None) == longer
    assert [name for name, _ in built.outputs] == ["h"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (lambda t: t.matrix("W0"), "already an input called 'W0', made at test_trace"),
        (lambda t: t.gaussian("h"), "already an input called 'h'"),
        (lambda t: t.output("h", t["h"]), "already an output called 'h'"),
        (lambda t: t["q"], "no output called 'q'"),
        (lambda t: t.gaussian("x", dim="e"), "no dimension class called 'e'.*Known: n"),
    ],
)
def test_extend_knows_what_is_there(more: Any, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        extend(chain, more)


def test_extend_does_not_share_groups_of_one_name() -> None:
    @program
    def two(t: Tracer) -> None:
        for vector in t.gaussians(["a", "b"]):
            t.output(f"out {vector.text}", vector)

    with pytest.raises(TraceError, match=r"already an input called 'a\.\.b'"):
        extend(two, lambda t: t.gaussians(["a", "b"]))


def test_extend_keeps_matrices_of_other_dimensions() -> None:
    @program
    def wide(t: Tracer) -> None:
        t.dim("d", "3/2")
        t.output("y", t.matrix("W", rows="d") @ t.gaussian("x"))

    longer = extend(wide, lambda t: t.output("z", t.matrix("V", cols="d") @ t["y"]))
    assert Input(Family("V", ("n", "d"))) in longer.nodes
    assert longer.dim["d"].ratio == Fraction(3, 2)


def test_programs_of_other_makers() -> None:
    builder = Builder()
    builder.output("s", builder.add(Data("s")))
    assert isinstance(as_program(builder.finish()), Program)
    for wrong, message in (
        (3, "a program is needed, not the number 3"),
        (lambda t: None, r"Write @tp\.program above `def <lambda>\(t\)"),
        (None, "a program is needed, not None"),
    ):
        with pytest.raises(TraceError, match=message):
            as_program(wrong)
    with pytest.raises(TraceError, match="extended by a function, not None"):
        extend(chain, None)  # type: ignore[arg-type]


def test_parameters_are_checked() -> None:
    with pytest.raises(UnknownName, match=r"test_trace\.py:\d+: .*parameter.*'depht'.*'depth'"):
        chain.build(depht=3)
    for use in (needs.build, partial(as_program, needs), lambda: needs.nodes):
        with pytest.raises(TraceError, match=r"needs depth.*needs\.build\(depth=\.\.\.\)"):
            use()

    @program
    def anything(t: Tracer, **sizes: int) -> None:
        t.output("x", sizes["a"] * t.gaussian("x"))

    assert len(anything.build(a=2).nodes) == 2


def test_a_program_without_output() -> None:
    @program
    def silent(t: Tracer) -> Any:
        return t.gaussian("x")

    with pytest.raises(TraceError, match=r"'silent' has no output.*t\.output") as caught:
        silent.build()
    assert caught.value.where == f"test_trace.py:{silent.__wrapped__.__code__.co_firstlineno}"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (3, "made of a function, not the number 3"),
        (lambda: None, "takes no tracer.*first argument is the tracer"),
        (lambda *, t: None, "takes no tracer"),
    ],
)
def test_what_is_no_program(wrong: Any, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        program(wrong)


def test_a_traced_function_is_not_traced_again() -> None:
    assert program(chain) is chain
    assert isinstance(chain, Traced)


def test_methods_are_functions() -> None:
    class Model:
        factor = 3

        def forward(self, t: Tracer) -> None:
            t.output("y", self.factor * t.gaussian("x"))

    assert program(Model().forward).nodes[-1] == LinComb((Fraction(3),), (None,), (0,))


def test_errors_of_the_users_own_code_pass_through() -> None:
    @program
    def broken(t: Tracer) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        broken.build()
    with pytest.raises(KeyError, match="mine"):
        broken.nodes  # noqa: B018


def test_an_error_without_a_place_gets_the_line() -> None:
    @program
    def lost(t: Tracer) -> None:
        raise ScaleError("a message.", hint="A hint.")

    line = lost.__wrapped__.__code__.co_firstlineno + 2
    with pytest.raises(ScaleError) as caught:
        lost.build()
    assert str(caught.value) == f"TPC400 test_trace.py:{line}: a message. A hint."
    assert caught.value.args == ("a message.",)


def test_an_error_that_names_another_place_gets_the_line_too() -> None:
    @program
    def lost(t: Tracer) -> None:
        raise ScaleError("a message.", where="layer 3")

    line = lost.__wrapped__.__code__.co_firstlineno + 2
    with pytest.raises(ScaleError, match=rf"layer 3 at test_trace\.py:{line}: a message"):
        lost.build()
