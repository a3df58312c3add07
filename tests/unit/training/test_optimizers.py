"""Optimizers by name, with settings, from texts and files; what is refused, and why."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import ScaleError, StudyError, TpcalcError, UnknownName
from tpcalc.exponents import as_ex
from tpcalc.sources import Source
from tpcalc.training.optimizer_sizes import Entries
from tpcalc.training.optimizers import REGISTRY, Optimizer, lookup

DATA = tp.Samples([(1, 0.4), (0.5, 1.1)], [1, -0.6])
LION = """optimizer lion(b1=9/10, b2=99/100, decay=0)
w = (1 - lr decay) w - lr sign(b1 m + (1 - b1) g)
m = b2 m + (1 - b2) g
"""
STEPS = [(Fraction(1), as_ex(0))] * 3
AT = Entries(Fraction(-1), sides=2)


def mine(text: str, **values: object) -> Optimizer:
    return Optimizer("mine", text, "of one's own", Source("this test"), values)


def trained(optimizer: object, **settings: Any) -> tp.Program:
    return tp.train(tp.MLP(2, "relu"), "mup", DATA, optimizer=optimizer, **settings)  # type: ignore[arg-type]


def test_settings_in_brackets() -> None:
    found = lookup("AdamW( decay = 0.1, eps = 0.1 n^-1 )")
    assert found == lookup("adamw").with_settings(decay="0.1", eps="0.1 n^-1")
    assert found.values == {**lookup("adamw").values, "decay": "0.1", "eps": "0.1 n^-1"}
    assert lookup(" SGD() ") == REGISTRY["sgd"]


@pytest.mark.parametrize("name", REGISTRY)
def test_the_label_is_the_optimizer(name: str) -> None:
    """Also with a power of n, and in a group, whose settings stand between blanks."""
    own = REGISTRY[name]
    if "eps" in own.values:
        own = own.with_settings(eps="1/10 n^(-3/2)")
    for label in (own.label, own.label.replace(" ", "")):
        found = lookup(label)
        assert found.settings == own.settings and found.first(AT) == own.first(AT)
        assert found.whole or found.path(STEPS) == own.path(STEPS)


def test_a_text_and_a_file_are_the_entry(tmp_path: Path) -> None:
    path = tmp_path / "my.opt"
    path.write_text(LION)
    for found in (lookup(LION), lookup(str(path))):
        assert found.name == "lion" and found.degree == 0
        assert found.path(STEPS) == REGISTRY["lion"].path(STEPS)
    assert trained(LION, steps=2) == trained("lion", steps=2)


def test_the_sign_of_a_multiple_is_a_sign() -> None:
    """Lion's first step is that of SignSGD, and is known as well."""
    step = STEPS[:1]
    assert lookup("lion").path(step).moves == lookup("sign").path(step).moves
    net = tp.MLP(2, "tanh", norm="layer")
    given: dict[str, Any] = {"lr": 0.3, "watch": ("h", "dW_x")}
    sign, lion = (tp.train(net, "mup", DATA, optimizer=o, **given) for o in ("sign", "lion"))
    assert sign == lion
    assert {row.status for row in tp.orders(lion).table.rows} == {"exact"}


def test_a_step_of_rate_zero_contributes_nothing() -> None:
    """Its contributions are there, and 0."""
    given: dict[str, Any] = {"steps": 2, "schedule": [1, 0], "watch": ("dW_x",)}
    for name in ("sgd", "momentum", "adam", "lion(decay=0.1)"):
        orders = tp.orders(trained(name, **given))
        assert [str(orders[f"dW_x[{layer},2,0]"]) for layer in (1, 2, 3)] == ["0"] * 3


REFUSED: dict[str, tuple[Callable[[], object], type[TpcalcError], str]] = {
    "a name": (lambda: lookup("adm"), UnknownName, "no optimizer called 'adm'.*adam"),
    "no name": (lambda: lookup(3), UnknownName, "no optimizer called '3'"),  # type: ignore[arg-type]
    "a bracket": (lambda: lookup("adamw("), UnknownName, "'adamw\\('"),
    "a setting": (lambda: lookup("adamw(dekay=1)"), UnknownName, "'dekay'.*'decay'"),
    "no value": (lambda: lookup("adamw(decay)"), StudyError, "a setting 'decay'.*a value"),
    "an empty value": (lambda: lookup("adamw(decay=)"), StudyError, "a setting 'decay="),
    "twice": (lambda: lookup("adamw(decay=1, decay=2)"), StudyError, "'decay=2'"),
    "no number": (
        lambda: lookup("adam(eps=tiny)"),
        StudyError,
        "the hyperparameter eps of adam must be a number, not 'tiny'",
    ),
    "no file": (lambda: lookup("none.opt"), StudyError, "none.opt: there is no such file"),
    "a name in a text": (lambda: mine("w = w - lr beta g"), UnknownName, "'beta'"),
    "a function": (lambda: mine("w = w - lr tanh(g)"), UnknownName, "'tanh'.*abs, .*sign, sqrt"),
    "no weight": (lambda: mine("m = g"), StudyError, "no line says what becomes of w"),
    "no formula": (lambda: mine("w = w - lr (g > 0)"), StudyError, "'g > 0'.*no formula"),
    "a bracket in a text": (lambda: mine("w = w - lr (g"), StudyError, "never closed"),
    "a line that sets lr": (lambda: mine("lr = lr / 2\nw = w - lr g"), StudyError, "'lr' cannot"),
    "a line that sets a number": (
        lambda: mine("b = 1\nw = w - b g", b=1),
        StudyError,
        "'b' cannot",
    ),
    "t as a number": (lambda: mine("w = w - lr t g", t=3), StudyError, "'t' cannot.*nothing else"),
    "sqrt as a number": (lambda: mine("w = w - lr sqrt", sqrt=3), StudyError, "'sqrt' cannot"),
    "no gradient": (lambda: mine("w = w - lr g - 3"), StudyError, "no gradient is in"),
    "a power of w": (lambda: mine("w = w - lr w^3"), StudyError, "initial weights.*Decouple"),
    "a division by g": (lambda: mine("w = w - lr / g"), StudyError, "'lr / g'.*may be 0"),
    "a division by another step": (
        lambda: mine("m = 1/2 m + g\nw = w - lr m / sqrt(g^2)"),
        StudyError,
        "a division by what may be 0 where its numerator is not",
    ),
    "Adam with b2 = 0": (lambda: lookup("adam(b2=0)"), StudyError, "may be 0 where its numerator"),
    "Adam with b1 = 1": (
        lambda: lookup("adam(b1=1)"),
        StudyError,
        "b1 of adam is 1; it must be from 0 to below 1",
    ),
    "an average that grows": (
        lambda: mine("m = b m + (1 - b) g\nw = w - lr m", b=2),
        StudyError,
        "b of .* is 2; it must be from 0 to below 1",
    ),
    "a momentum that grows": (
        lambda: lookup("momentum(beta=1)"),
        StudyError,
        "beta of momentum",
    ),
    "decay below 0": (lambda: lookup("adamw(decay=-1)"), StudyError, "decay of adamw is -1"),
    "eps below 0": (lambda: lookup("adam(eps=-1 n^-1)"), StudyError, "eps of adam is -1 n"),
    "decay of a group below 0": (
        lambda: trained("adamw", groups={"hidden": {"decay": -1}}),
        StudyError,
        "decay of adamw is -1; it must be at least 0",
    ),
    "coupled decay": (lambda: trained("adam(decay=0.1)"), StudyError, "optimizer adam: .*Decouple"),
    "all steps of Muon": (
        lambda: trained("muon"),
        StudyError,
        "optimizer muon: a step is a function of whole parameters .polar.*tp.check",
    ),
    "a norm of two": (
        lambda: mine("w = w - lr norm(g, w)"),
        StudyError,
        "'norm.g, w.' cannot be read",
    ),
    "a clip of 0": (lambda: lookup("sgd(clip=0)"), StudyError, "clip of sgd is 0.*above 0"),
    "two degrees": (lambda: mine("w = w - lr (g + sign(g))").degree, StudyError, "neither linear"),
    "a norm times a gradient": (
        lambda: mine("w = w - lr norm(g) g").degree,
        StudyError,
        "neither linear",
    ),
    "a square": (lambda: mine("w = w - lr g^2").degree, StudyError, "neither linear"),
    "rates for gradient descent": (
        lambda: tp.train(tp.MLP(2), "ip-llr", DATA, optimizer="adam"),
        StudyError,
        "ip-llr has learning rates for gradient descent alone.*mup, ntk or standard",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    ask, kind, text = REFUSED[case]
    with pytest.raises(kind, match=f"(?s){text}"):
        ask()


def test_a_file_without_a_head(tmp_path: Path) -> None:
    path = tmp_path / "bad.opt"
    path.write_text("slow\nw = w - lr g")
    with pytest.raises(StudyError, match=r"bad\.opt: the first line is 'slow'.*Write 'optimizer"):
        lookup(str(path))


def test_gates_that_cannot_be_told_leave_a_bound() -> None:
    """Lion with decay from the second step on: never unbounded, never called exact there."""
    run = trained("lion(decay=0.1)", steps=2, lr=0.1, watch=("h", "x", "dh"))
    found = tp.orders(run)
    sizes = {name: found[name] for name, _ in run.outputs}
    coarse = {name: order for name, order in sizes.items() if "sizes alone" in order.reason}
    assert coarse and all(order.status == "upper" for order in coarse.values())
    assert all(order.n is not None for order in sizes.values())
    expected = {"f": 0, "h": 0, "x": 0, "d": -1}
    for name, order in coarse.items():
        assert order.n == as_ex(expected[name[0]]), name


def test_bounds_from_sizes_alone_against_networks() -> None:
    """They grow no faster than the bound says, within 5 standard errors of a fit over widths."""
    run = trained("lion(decay=0.1)", steps=2, lr=0.1, watch=("x",))
    found, widths = tp.orders(run), (64, 128, 256, 512)
    values = {
        (row.name, row.width): np.asarray(row.values)
        for row in tp.simulate(run, widths, seeds=16, backend="dense").rows
    }
    name = "x[2,2,0]"
    assert found[name].n == as_ex(0) and found[name].status == "upper"
    sizes = [values[name, n] for n in widths]  # means of squares
    logs, x = [np.log(np.mean(y)) for y in sizes], np.log(widths) - np.mean(np.log(widths))
    errors = np.array([np.std(y) / np.mean(y) / 4 for y in sizes])
    slope, error = float(x @ logs / (x @ x)), float(np.sqrt(x**2 @ errors**2) / (x @ x))
    assert slope < 5 * error


@pytest.mark.slow
def test_eps_of_every_layer_is_decided() -> None:
    eps = {"input": "0.1 n^-1", "hidden": "0.1 n^(-3/2)", "readout": "0.1 n^-1"}
    groups = {role: {"eps": value} for role, value in eps.items()}
    net = tp.MLP(3, "relu", bias="all")
    found = tp.check(net, "mup", optimizer="adam", lr=0.1, groups=groups, steps=2)
    assert (found.verdict, found.valid_for) == ("feature-learning", "all t")


def test_an_eps_that_rules_names_its_power() -> None:
    found = tp.check(tp.MLP(2, "relu"), "mup", optimizer="adam(eps=1)", lr=0.1, steps=1)
    (note,) = (note for note in found.notes if note.startswith("eps beside") and "w[1]" in note)
    assert "it is dominant" in note and "unless it is a number times n^(-1) or smaller" in note


def test_groups_on_parts_of_a_fused_parameter_are_noted() -> None:
    class Gated(tp.Network):
        def __init__(self, t: Any) -> None:
            self.enter = t.linear(t.n, "in")
            self.w = t.fused({"a": (t.n, t.n), "b": (t.n, t.n)})
            self.read = t.linear(t.outputs, t.n)

        def forward(self, x: Any) -> Any:
            h = tp.tanh(self.enter(x))
            return self.read(tp.tanh(self.w["a"](h)) + tp.tanh(self.w["b"](h)))

    settings: Any = {"steps": 1, "verify": False}
    plain = tp.check(Gated, "mup", groups={"w.*": {"lr": 2}}, **settings)
    assert not any("settings of their own" in note for note in plain.notes)
    torn = tp.check(Gated, "mup", groups={"w.a": {"lr": 2}}, **settings)
    assert any(n.startswith("w: groups") and "settings of their own" in n for n in torn.notes)


def test_rates_that_are_not_known_say_which_are() -> None:
    net = tp.MLP(2, "relu", bias="all")
    with pytest.raises(ScaleError, match=r"layer 1 at step 1.*Ask for steps=1, whose rates"):
        tp.solve(net, "standard", optimizer="adam", multipliers=True, steps=2)
    assert tp.solve(net, "standard", optimizer="adam", multipliers=True, steps=1)


@pytest.mark.parametrize("formula", ["g" + " + g" * 900, "g" + "+g" * 9000, "-" * 3000 + "g"])
def test_long_texts_are_told(formula: str) -> None:
    with pytest.raises(StudyError, match="too long or nested too deeply"):
        lookup(f"optimizer mine()\nw = w - lr ({formula})")
