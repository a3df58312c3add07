"""False facts of an activation are refused by name; pieces make the function they are pieces of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

from tpcalc.activations.activation import Activation, ActivationFamily
from tpcalc.activations.entries import REGISTRY, lookup
from tpcalc.activations.entries.exp import EXP
from tpcalc.activations.entries.normal import NORMAL_CDF
from tpcalc.activations.entries.step import STEP
from tpcalc.activations.verify import verify
from tpcalc.functions import Atom, Expr
from tpcalc.integrals.exact import supported
from tpcalc.sources import Source


def with_pieces(text: str, pieces: Callable[[Expr], Expr]) -> Activation:
    found = lookup(text)
    assert isinstance(found.function, Atom)
    atom = replace(found.function, pieces=pieces)
    return Activation(atom, ActivationFamily("wrong", lambda: atom, "a lie", Source("none")))


def broken(activation: Activation) -> set[str]:
    return {violation.fact for violation in verify(activation)}


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("relu", lambda z: z * STEP(z) + Fraction(1, 1000)),
        ("relu", lambda z: -z * STEP(-z)),
        ("abs", lambda z: z * STEP(z) - z),
        ("gelu", lambda z: z * NORMAL_CDF(2 * z)),
        ("elu", lambda z: z * STEP(z) + EXP(z) * STEP(-z)),
        ("tanh", lambda z: 2 * NORMAL_CDF(z) - 1),
    ],
)
def test_wrong_pieces_are_named(text: str, pieces: Callable[[Expr], Expr]) -> None:
    assert broken(lookup(text)) == set()
    assert broken(with_pieces(text, pieces)) == {"pieces"}
    assert "the pieces make" in verify(with_pieces(text, pieces))[0].text


def test_pieces_may_differ_at_the_kink_alone() -> None:
    # step(0) = 0, so that these are 0 at 0, where elu_slope is 1.
    assert broken(with_pieces("elu_slope", lambda z: STEP(z) + EXP(z) * STEP(-z))) == set()


def test_every_false_fact_of_one_activation_is_named() -> None:
    found = lookup("relu")
    assert isinstance(found.function, Atom)
    facts = replace(found.facts, parity="even", kinks=())
    atom = replace(found.function, facts=facts, pieces=lambda z: z)
    family = ActivationFamily("wrong", lambda: atom, "a lie", Source("none"))
    assert broken(Activation(atom, family)) == {"analytic", "parity", "kinks", "pieces"}


def test_pieces_tell_atoms_apart() -> None:
    right, wrong = lookup("relu").function, with_pieces("relu", lambda z: z).function
    assert right != wrong


WITHOUT = {"tanh", "even_tanh", "sigmoid", "softplus", "swish", "log", "sqrt"}


def test_closed_forms_are_there_for_every_activation_that_has_one() -> None:
    plain = [name for name, family in REGISTRY.items() if not family.parameters]
    members = [*plain, "relu^2", "relu^1/2", "leaky_relu", "elu:2", "elu_slope", "poly:1,0,2"]
    members += ["gaussian", "gaussian:1/2"]
    lacking = {name for name in members if not supported([lookup(name).fn.expr])}
    assert lacking == WITHOUT
