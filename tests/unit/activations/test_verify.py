"""A false declaration is caught, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from math import inf
from typing import Any

import pytest

from tpcalc.activations.activation import Activation, ActivationFamily
from tpcalc.activations.entries import REGISTRY, lookup
from tpcalc.activations.entries.exp import EXP
from tpcalc.activations.entries.normal import NORMAL_CDF
from tpcalc.activations.entries.step import STEP
from tpcalc.activations.verify import _CHECKS, verify
from tpcalc.functions import Atom, Expr, Facts
from tpcalc.integrals.exact import supported
from tpcalc.sources import Source

# That a derivative may be another's says that nothing is known, which is never false.
FACTS = {field.name for field in fields(Facts)} - {"surrogate"}


def lying(text: str, **changes: Any) -> Activation:
    """The atom of the catalogue with some of its facts (or functions) replaced."""
    right = lookup(text)
    assert isinstance(right.function, Atom)
    facts = {key: changes.pop(key) for key in FACTS if key in changes}
    wrong = replace(right.function, facts=replace(right.facts, **facts), **changes)
    family = ActivationFamily("wrong", lambda: wrong, "a lie", Source("none"))
    return Activation(wrong, replace(family, domain=right.domain))


def broken(activation: Activation) -> set[str]:
    return {violation.fact for violation in verify(activation)}


def cosine(z: Expr) -> Expr:
    return lookup("cos")(z)


@pytest.mark.parametrize(
    ("text", "changes", "fact"),
    [
        ("tanh", {"parity": "even"}, "parity"),
        ("tanh", {"parity": "none"}, "parity"),
        ("sigmoid", {"parity": "odd"}, "parity"),
        ("relu", {"parity": "even"}, "parity"),
        ("log", {"parity": "odd"}, "parity"),
        ("relu", {"homogeneity": Fraction(2)}, "homogeneity"),
        ("relu", {"homogeneity": None}, "homogeneity"),
        ("tanh", {"homogeneity": Fraction(1)}, "homogeneity"),
        ("step", {"homogeneity": None}, "homogeneity"),
        ("relu", {"kinks": ()}, "kinks"),
        ("relu", {"kinks": (0.0, 1.0)}, "kinks"),
        ("relu", {"kinks": (0.5,)}, "kinks"),
        ("relu^3", {"kinks": ()}, "kinks"),
        ("elu", {"kinks": ()}, "kinks"),
        ("leaky_relu:0.9", {"kinks": ()}, "kinks"),
        ("gelu", {"kinks": (0.0,)}, "kinks"),
        ("tanh", {"growth": Fraction(1)}, "growth"),
        ("gelu", {"least": 0.0}, "least"),
        ("tanh", {"tame": True}, "tame"),
        ("gaussian", {"tame": True}, "tame"),
        ("sawtooth", {"period": 2.0}, "period"),
        ("tanh", {"period": 1.0}, "period"),
        ("elu", {"near_zero": lambda z, order: z}, "near_zero"),
        ("elu:2", {"near_zero": lookup("elu").function.near_zero}, "near_zero"),
        ("relu", {"growth": Fraction(0)}, "growth"),
        ("relu^2", {"growth": Fraction(1)}, "growth"),
        ("softplus", {"growth": None}, "growth"),
        ("exp", {"growth": Fraction(3), "order": None}, "growth"),
        ("exp", {"order": 0}, "order"),
        ("log", {"growth": Fraction(1), "order": None}, "growth"),
        ("sigmoid", {"value_at_zero": 0.0}, "value_at_zero"),
        ("log", {"value_at_zero": 0.0}, "value_at_zero"),
        ("tanh", {"slope_at_zero": None}, "slope_at_zero"),
        ("tanh", {"slope_at_zero": 0.9}, "slope_at_zero"),
        ("relu", {"slope_at_zero": 0.0}, "slope_at_zero"),
        ("log", {"slope_at_zero": 1.0}, "slope_at_zero"),
        ("tanh", {"derivative": cosine}, "derivative"),
        ("relu", {"derivative": None}, "derivative"),
        ("tanh", {"sympy": None}, "sympy"),
        ("tanh", {"sympy": lambda z: z}, "sympy"),
        ("relu", {"pieces": lambda z: z * STEP(z) + Fraction(1, 1000)}, "pieces"),
        ("relu", {"pieces": lambda z: -z * STEP(-z)}, "pieces"),
        ("abs", {"pieces": lambda z: z * STEP(z) - z}, "pieces"),
        ("gelu", {"pieces": lambda z: z * NORMAL_CDF(2 * z)}, "pieces"),
        ("elu", {"pieces": lambda z: z * STEP(z) + EXP(z) * STEP(-z)}, "pieces"),
        ("tanh", {"pieces": lambda z: 2 * NORMAL_CDF(z) - 1}, "pieces"),
    ],
)
def test_a_false_declaration_is_named(text: str, changes: dict[str, Any], fact: str) -> None:
    assert broken(lookup(text)) == set()
    # A kink that is not declared is no point where a function is analytic, either.
    assert broken(lying(text, **changes)) - {"analytic"} == {fact}


def test_every_fact_is_checked() -> None:
    assert _CHECKS.keys() >= FACTS


def test_a_wrong_evaluation_is_noticed() -> None:
    def shifted(xp: Any, z: Any) -> Any:
        return xp.tanh(z) + 0.01

    assert {"value_at_zero", "parity", "sympy"} <= broken(lying("tanh", evaluate=shifted))


def test_a_jump_that_is_not_declared_is_noticed() -> None:
    assert broken(lying("step", kinks=())) == {"kinks", "derivative", "analytic"}


def test_the_text_says_what_was_declared_and_what_was_found() -> None:
    (violation,) = verify(lying("tanh", slope_at_zero=0.9))
    assert "declared f'(0) = 0.9, found 1" in violation.text
    assert "the pieces make" in verify(lying("relu", pieces=lambda z: z))[0].text


def test_a_half_line_has_no_parity() -> None:
    half = replace(lookup("square").family, domain=(0.0, inf))
    make: Callable[..., Any] = half.make
    assert "parity" in broken(Activation(make(), half))


def test_pieces_may_differ_at_the_kink_alone() -> None:
    # step(0) = 0, so that these are 0 at 0, where elu_slope is 1.
    apart = lying("elu_slope", pieces=lambda z: STEP(z) + EXP(z) * STEP(-z))
    assert broken(apart) == set()


def test_every_false_fact_of_one_activation_is_named() -> None:
    wrong = lying("relu", parity="even", kinks=(), pieces=lambda z: z)
    assert broken(wrong) == {"analytic", "parity", "kinks", "pieces"}


def test_pieces_tell_atoms_apart() -> None:
    assert lookup("relu").function != lying("relu", pieces=lambda z: z).function


WITHOUT = {"tanh", "even_tanh", "sigmoid", "softplus", "swish", "log", "sqrt"}


def test_closed_forms_are_there_for_every_activation_that_has_one() -> None:
    plain = [name for name, family in REGISTRY.items() if not family.parameters]
    members = [*plain, "relu^2", "relu^1/2", "leaky_relu", "elu:2", "elu_slope", "poly:1,0,2"]
    members += ["gaussian", "gaussian:1/2"]
    lacking = {name for name in members if not supported([lookup(name).fn.expr])}
    assert lacking == WITHOUT


@pytest.mark.parametrize("text", ["relu^3/4", "relu^9/10", "relu^1/2"])
def test_roots_have_no_derivative_and_need_none(text: str) -> None:
    assert verify(lookup(text)) == ()
