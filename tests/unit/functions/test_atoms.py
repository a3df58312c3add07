"""Named functions: when two of them are the same one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from properties.programs import RELU, STEP, TANH, leaky_relu

from tpcalc.errors import NotDifferentiable, ProgramError, TraceError
from tpcalc.functions import Atom, Facts, Var


def scaled(by: float, named: tuple[float, ...] = ()) -> Atom:
    """A factory as a catalogue has them: each call makes new function objects."""
    return Atom("scaled", lambda xp, z: by * z, lambda z: z * 0 + by, params=named)


def test_one_factory_gives_equal_atoms() -> None:
    assert leaky_relu(Fraction(1, 5)) == leaky_relu(Fraction(1, 5))
    assert hash(leaky_relu(Fraction(1, 5))) == hash(leaky_relu(Fraction(1, 5)))
    assert leaky_relu(Fraction(1, 5)) != leaky_relu(Fraction(1, 4))
    assert leaky_relu(Fraction(1, 2)) != leaky_relu(0.5)
    assert TANH != RELU
    assert TANH != "tanh"


def test_what_a_function_took_from_around_it_counts() -> None:
    assert scaled(2.0) == scaled(2.0)
    assert scaled(2.0) != scaled(3.0)
    big = np.arange(3.0)
    assert Atom("a", lambda xp, z: z @ big, None) != Atom("a", lambda xp, z: z @ (2 * big), None)


def test_an_atom_that_holds_itself_compares() -> None:
    def sigmoid(slope: float) -> Atom:
        atom: Atom = Atom(
            "sigmoid", lambda xp, z: z * slope, lambda z: atom(z) * (1 - atom(z)), params=(slope,)
        )
        return atom

    assert sigmoid(1.5) == sigmoid(1.5)
    assert sigmoid(1.5) != sigmoid(2.5)


def test_derivative_and_facts_count() -> None:
    def made(rule: Any, facts: Facts) -> Atom:
        return Atom("made", np.abs, rule, facts)

    one = made(STEP, Facts())
    assert one == made(STEP, Facts())
    assert one != made(TANH, Facts())
    assert one != made(STEP, Facts(parity="even"))


def test_text_shows_parameters() -> None:
    assert leaky_relu(Fraction(1, 5)).text == "leaky_relu[1/5]"
    assert Atom("two", np.abs, None, params=(Fraction(-1), 0.5)).text == "two[-1, 0.5]"


@pytest.mark.parametrize("name", ["<lambda>", "lambda", "", "two words", "f(x)", "ﬁ"])
def test_a_name_must_be_readable(name: str) -> None:
    with pytest.raises(TraceError, match="cannot be called"):
        Atom(name, np.abs, None)


def test_parameters_are_finite() -> None:
    with pytest.raises(ProgramError, match="finite"):
        Atom("f", np.abs, None, params=(float("nan"),))


def test_a_jump_says_so() -> None:
    with pytest.raises(NotDifferentiable, match="step jumps"):
        STEP.differentiate(Var(0))
