"""solve: what it refuses, what it says of its answers, and the unknowns of ``scales`` below it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import pytest

import tpcalc as tp
from tpcalc.errors import ScaleError, UnknownName, UsageError
from tpcalc.evaluate.witness import Finding
from tpcalc.exponents import Ex, as_ex, parse_ex
from tpcalc.exponents.chamber import Chamber, Region
from tpcalc.limit.context import Context
from tpcalc.limit.graph import LRef
from tpcalc.limit.scales import Scales, Unsettled, Unsolved, scales, symbols
from tpcalc.networks.architectures.mlp import MLP
from tpcalc.program.program import Program
from tpcalc.questions.rates.bounded import _calm
from tpcalc.questions.rates.unknowns import Run
from tpcalc.questions.solve import solve
from tpcalc.results import Samples

HALF = Fraction(1, 2)


def unknown_rates(act: str, depth: int, steps: int = 1) -> Run:
    return Run(tp.Training(MLP(depth, act), "naive-ip", steps=steps))


def test_an_update_that_fluctuates_only_is_refused_by_name() -> None:
    """lambda_2 = 0: the features of a tanh network of vanishing size are linear and independent.

    <x_0^2, x_1^2> / n is n^-1/2 times a Gaussian, so that layer 3 has a rate at step 0. At step 1
    layer 4 meets averages whose law is not known.
    """
    with pytest.raises(ScaleError) as caught:
        solve(MLP(5, "tanh"), "naive-ip")
    text = f"{caught.value.where}: {caught.value.told}"
    assert "layer 4 at step 1" in text
    assert "dW_x[4,2,1]" in text
    assert "at c_4(1) = 0 it is at most n^(-3/2)" in text
    assert "0 by symmetry" in text


def test_an_update_that_is_0_is_refused() -> None:
    data = Samples(((0.0, 0.0), (1.0, 0.0)), ((1.0,), (1.0,)))
    with pytest.raises(ScaleError, match=r"layer 1 at step 0: .* identically 0"):
        solve(MLP(2, "relu"), "mup", data, steps=1)


def test_an_update_behind_all_depths_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    run = unknown_rates("tanh", 3)
    program = run.program()
    asked = {u.output: u.symbol for u in run.unknowns()}
    with pytest.raises(Unsettled) as caught:
        scales(program, unknowns=asked)
    assert (caught.value.symbol, caught.value.bound) == ("c_3_0__", Fraction(-3))
    monkeypatch.setattr("tpcalc.questions.rates.unknowns.DEPTHS", (Fraction(0),))
    with pytest.raises(ScaleError) as refused:
        run.derive(program, {})
    assert "layer 3 at step 0" in str(refused.value)
    assert "at most n^(-3), and with terms down to n^(-0)" in refused.value.message


@pytest.mark.parametrize(
    ("act", "message"),
    [
        ("tanh", "the degree of homogeneity of tanh is none"),
        ("abs", "abs is none: the degree of homogeneity of abs is 1"),
        ("poly:0,0,1", "the degree of homogeneity of x0\\*\\*2 is none"),
    ],
)
def test_p_is_the_power_of_relu(act: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        solve(MLP(2, act), "naive-ip", symbolic=("p",))


def test_relu_as_a_function_has_a_power_too() -> None:
    for act in (tp.relu, tp.relu_pow(3), lambda z: tp.relu(z)):
        found = solve(MLP(2, act), "naive-ip", symbolic="p", steps=1, verify=False)
        assert found.steps[0].c[0] == "-1 - 1/2*p"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"symbolic": ("q",)}, "symbolic names 'q'"),
        ({"multipliers": 1}, "multipliers is 1"),
        ({"verify": "no"}, "verify is 'no'"),
        ({"steps": 0}, "steps is 0"),
        ({"batch": 0}, "batch is 0"),
        ({"symbolic": ("p",), "at": {"p": HALF}}, r"relu\^\(1/2\)"),
        ({"symbolic": ("p", "L"), "at": {"p": HALF}}, r"relu\^\(1/2\)"),
        ({"symbolic": ("L",), "multipliers": True}, "multipliers of a network of symbolic depth"),
    ],
)
def test_arguments_that_make_no_sense(given: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        solve(MLP(2, "relu"), "mup", **given)


def test_other_arguments_that_make_no_sense() -> None:
    with pytest.raises(UsageError, match="the architecture is 'mlp'"):
        solve("mlp", "mup")
    with pytest.raises(UnknownName, match="'q'"):
        solve(MLP(2, "relu"), "mup", at={"q": 1})
    with pytest.raises(UsageError, match="no a_l is decided"):
        solve(MLP(2, "relu", "all"), "ip-bias", multipliers=True)


@pytest.mark.parametrize(
    ("network", "table", "message"),
    [
        (MLP(3, "relu", "all"), "mup", "biases in all layers"),
        (MLP(3, "relu"), "ac:0,1,1/2,1;0", r"at every depth"),
        (MLP(3, "relu"), "ip-non-centered", "not centred"),
        (MLP(3, "relu"), "ac:0,L,1;0", "called 'L'"),
        (MLP(3, "relu", norm="layer"), "naive-ip", "normalised layers are not followed"),
        (MLP(3, "relu", bias="hidden"), "naive-ip", "biases in all layers"),
    ],
)
def test_networks_without_one_rule_for_all_depths(network: MLP, table: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        solve(network, table, symbolic=("L",))


@pytest.mark.parametrize(
    ("act", "table", "message"),
    [
        ("tanh", "naive-ip", "uniform pattern not proved"),
        ("gelu", "naive-ip", "gelu"),
        ("linear", "naive-ip", r"-\(L \+ 3\)/2, but the derivation at L = 2 gives -2"),
        ("relu", "ac:0,1/4,1;0", "it takes a_l >= 1/2"),
        ("relu", "ac:-1,1,1;0", "it takes a_1 >= 0"),
        ("relu", "ac:0,1,1/4;0", r"it takes a_\(L\+1\) >= 1/2"),
    ],
)
def test_depths_that_follow_no_rule(act: str, table: str, message: str) -> None:
    with pytest.raises(ScaleError, match=message):
        solve(MLP(3, act), table, symbolic=("L",))


@pytest.mark.slow
def test_a_linear_network_whose_layers_vanish() -> None:
    """x^l_0 and dh^l_0 are n^((1-l)/2) and n^((l-5)/2); x^l_0 . x^l_1 is n^(-l/2) for l > 1."""
    (first, *_) = solve(MLP(3, "linear"), "naive-ip").steps
    assert first.c == ("-2", "-5/2", "-3", "-5/2")


def test_multipliers() -> None:
    for bias in ("none", "all"):
        found = solve(MLP(3, "relu", bias), "naive-ip", multipliers=True, steps=1, verify=False)
        assert found.closed == (("a_1", "0"), ("a_2", "1/2"), ("a_3", "1/2"), ("a_4", "1"))
        assert found.steps[0].c == ("-1", "-1", "-1", "-1")
    free = solve(
        MLP(2, "tanh"), "ac:1,1,b;0", multipliers=True, at={"b": HALF + 1}, steps=1, verify=False
    )
    assert free.closed == (("a_1", "0"), ("a_2", "1/2"))
    assert free.steps[0].c == ("-b", "-b", "1 - 2*b")
    assert dict(free.point) == {"b": "3/2"}


def test_biases_take_the_rates_of_their_weights_where_they_share_powers() -> None:
    found = solve(MLP(2, "relu", "all"), "ac:0,1/2,1;-1", steps=1, verify=False)
    assert found.steps[0].bias_c == found.steps[0].c == ("-1", "-1", "-1")
    found = solve(MLP(2, "relu", "all"), "mup", steps=1, verify=False)  # b of order one
    assert (found.steps[0].bias_c, found.steps[0].c) == (("-1", "-1", "0"), ("-1",) * 3)
    found = solve(MLP(2, "relu", "first"), "naive-ip", steps=1, verify=False)
    assert found.steps[0].bias_c == found.steps[0].c[:1]
    assert solve(MLP(2, "relu"), "naive-ip", steps=1, verify=False).steps[0].bias_c == ()
    own = solve(MLP(2, "relu", "all"), "ac:0,1,1;-1;0,1/2,0;-1", steps=1, verify=False)
    # n^(-2 b_l - c) dh^l of order one: the gradients dh^2, dh^1 are n^-1 and n^(-3/2).
    assert own.steps[0].bias_c == ("-3/2", "-2", "0")


def test_the_rates_of_the_parameterization_are_not_looked_at() -> None:
    rates = {
        solve(MLP(2, "relu"), name, steps=2, verify=False).steps
        for name in ("naive-ip", "ip-llr:1")
    }
    assert len(rates) == 1


def test_batches_and_outputs() -> None:
    rows = ((1.0, 0.5), (0.5, -1.0), (-0.3, 0.2), (0.4, 0.9))
    data = Samples(rows, ((1.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.0, 1.0)))
    found = solve(
        MLP(3, "relu", "all"), "naive-ip", data, steps=2, batch=2, loss="xent", verify=False
    )
    assert [step.c for step in found.steps] == [
        ("-2", "-5/2", "-5/2", "-2"),
        ("-1", "-2", "-2", "-1"),
    ]


def test_what_a_note_says_of_leading_coefficients() -> None:
    said = re.compile(
        r"of 6 leading coefficients, (\d) are not 0 by their form and (\d) by a test with the "
        r"particle engine(?: at p = 1)?(?:; of (\d) this is assumed)?"
    )
    found = solve(MLP(2, "relu"), "naive-ip", steps=2)
    symbolic = solve(MLP(2, "relu"), "naive-ip", symbolic="p", steps=2)
    assert symbolic.notes[0].count(" at p = 1") == 1
    for solution in (found, symbolic):
        note = solution.notes[0]
        match = said.fullmatch(note)
        assert match is not None
        form, tested, left = (int(part or 0) for part in match.groups())
        assert form >= 1 and tested >= 3 and form + tested + left == 6
        assert ("assumed" in note) is (left > 0)
    (assumed,) = solve(MLP(2, "relu"), "naive-ip", steps=2, verify=False).notes
    assert "assumed" in assumed
    assert dict(found.provenance.settings)["verify"] == "True"


def test_a_note_says_what_no_test_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(context: Context, refs: Iterable[LRef], seed: int) -> dict[LRef, Finding]:
        return {ref: Finding(None, "no value") for ref in refs}

    monkeypatch.setattr("tpcalc.questions.solve.nonzero", silent)
    (note,) = solve(MLP(2, "relu"), "naive-ip", steps=2).notes
    form = int(re.findall(r"(\d) are not 0 by their form and 0 by a test", note)[0])
    assert note.endswith(f"; of {6 - form} this is assumed")


def test_a_note_says_where_a_second_derivation_disagrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate that is n^(1/2) too small makes a contribution of n^(-1/2) in place of order one."""

    def smaller(program: Program, values: dict[str, Fraction], depth: Fraction) -> Scales:
        return scales(program, values={**values, "c_2_0__": values["c_2_0__"] + HALF}, depth=depth)

    monkeypatch.setattr("tpcalc.questions.solve.scales", smaller)
    (note,) = solve(MLP(2, "relu"), "naive-ip", steps=1).notes
    assert "of layer 2 at step 0, is n^(-1/2), not what was solved for" in note


def test_a_power_outside_the_region_is_noted() -> None:
    """f_0 is n^(p/4 - 1/2): from p = 2 on it explodes, and so does the derivative of the loss."""
    network, table = MLP(1, "relu"), "ac:-1/4,1;0"
    high = solve(network, table, symbolic="p", at={"p": 4}, steps=1, verify=False)
    assert "-2 + p > 0" in high.region
    assert "the formulas do not hold at p = 1" in high.notes[0]
    low = solve(network, table, symbolic="p", at={"p": HALF + 1}, steps=1, verify=False)
    assert "2 - p > 0" in low.region
    assert not any("do not hold" in note for note in low.notes)
    assert high.steps != low.steps
    for act, formulas, p in (("relu", low, 1), ("relu^3", high, 3)):
        numbers = solve(MLP(1, act), table, steps=1, verify=False).steps[0].c
        at = {"p": Fraction(p)}
        assert [parse_ex(c).at(at) for c in formulas.steps[0].c] == [Fraction(c) for c in numbers]


def test_the_sample_point_decides_the_chamber() -> None:
    """With a_out < 1 the output explodes at the first update, and the next rates follow it."""
    table = "ac:0,3/4,b;0"
    above = solve(MLP(2, "relu"), table, steps=2, verify=False)
    below = solve(MLP(2, "relu"), table, at={"b": Fraction(9, 10)}, steps=2, verify=False)
    assert above.steps[0] == below.steps[0]
    assert "-1 + b > 0" in above.region
    assert above.steps[1].c == ("-1", "-3/2", "1 - 2*b")
    assert below.steps[1].c != above.steps[1].c
    note = "with symbols it is not checked whether outputs and features stay bounded"
    assert note in below.notes
    number = solve(MLP(2, "relu"), "ac:0,3/4,9/10;0", steps=2, verify=False)
    assert note not in number.notes  # there the output binds, so that it does not explode
    (binds,) = (text for text in number.notes if text.startswith("layer 2 at steps 0, 1: its upd"))
    assert "the output would grow like n^(1/10) at the next step" in binds
    at = {"b": Fraction(9, 10)}
    assert parse_ex(below.steps[0].c[0]).at(at) == Fraction(number.steps[0].c[0])
    assert parse_ex(below.steps[0].c[1]).at(at) < Fraction(number.steps[0].c[1])


def test_a_later_step_alone_may_bind() -> None:
    """The entries of the readout are n^(-1) at first, and n^(-3/4) after its first update.

    A second update of layer 1 of order one is aligned with them, and would make f n^(1/4).
    """
    found = solve(MLP(1, "tanh"), "ac:1/4,1;0", steps=2, verify=False)
    assert [step.c for step in found.steps] == [("-3/2", "-3/2"), ("-1", "-1")]
    (binds,) = (note for note in found.notes if "would grow like" in note)
    assert binds.startswith("layer 1 at step 1: its update contributes n^(-1/4); at c_1 = -5/4")


@pytest.mark.parametrize("start", [-3, 0, 3])
@pytest.mark.parametrize(
    ("bend", "shallow", "steep", "zero"),
    [
        (max, (HALF, HALF), (1, 4), 1),  # steep at first: 1 - 4x until x = 1/7
        (min, (1, HALF / 2), (3, 2), HALF * 3),  # shallow at first: 1 - x/4 until x = 8/7
    ],
)
def test_where_a_falling_exponent_ends(
    start: int,
    bend: Callable[..., Fraction],
    shallow: tuple[Fraction, Fraction],
    steep: tuple[Fraction, Fraction],
    zero: Fraction,
) -> None:
    """The zero of two affine pieces that grow by 1 at the start, whatever else is compared."""
    x = Ex.symbol("c") - start
    one, two = (level - slope * x for level, slope in (shallow, steep))

    def formula(point: Fraction) -> tuple[Ex, Region]:
        chamber = Chamber({"c": point})
        chamber.sign(x - 50)
        above = chamber.sign(one - two) > 0
        return (one if above is (bend is max) else two), chamber.region

    assert _calm(formula, "c", Fraction(start), Fraction(1)) == as_ex(start + zero)


# ``scales`` with unknowns.


@tp.program
def chain(t: tp.Tracer) -> None:
    a, b = tp.symbol("a"), tp.symbol("b")
    x = t.gaussian("x")
    h = tp.n**-a * (t.matrix("W") @ x)
    t.output("h", h)
    t.output("g", tp.n**-b * (t.matrix("V") @ tp.relu(h)) + tp.n ** (-b) * h)


def test_unknowns_are_solved_in_the_order_of_the_program() -> None:
    found = scales(chain.build(), unknowns={"g": "b", "h": "a"})
    assert {name: str(value) for name, value in found.solved.items()} == {"a": "1/2", "b": "1/2"}
    assert found.region.lines == ()
    assert found.scale("g").power == 0


def test_an_unknown_that_is_compared_too_early_is_refused() -> None:
    @tp.program
    def early(t: tp.Tracer) -> None:
        x, y = t.gaussian("x"), t.gaussian("y")
        h = x + tp.n ** -tp.symbol("a") * y
        t.output("h", h)

    with pytest.raises(ScaleError, match="before the output that decides the unknown 'a'"):
        scales(early.build(), unknowns={"h": "a"})


def test_an_unknown_that_its_output_does_not_hold_is_refused() -> None:
    program = chain.build()
    with pytest.raises(Unsolved, match="it is of size n\\^\\(1/2 - a\\)"):
        scales(program, at={"a": Fraction(1)}, unknowns={"h": "b"})
    with pytest.raises(Unsolved):
        scales(program, unknowns={"h": "b", "g": "a"})


def test_symbols_of_functions_need_a_point_and_take_no_number() -> None:
    @tp.program
    def layer(t: tp.Tracer) -> None:
        x = tp.relu_pow("p")(tp.n ** -tp.symbol("a") * t.gaussian("g"))
        t.output("h", t.matrix("W") @ x)

    program = layer.build()
    assert symbols(program) == {"a", "p"}
    with pytest.raises(ScaleError, match="'p', which has no value"):
        scales(program, at={"a": HALF})
    with pytest.raises(ScaleError, match="'p' is the power of a function"):
        scales(program, values={"a": HALF, "p": Fraction(2)})
    found = scales(program, at={"a": HALF, "p": Fraction(2)})
    assert str(found.scale("h").power) == "1/2 - a*p"


def test_rates_as_stored_are_those_of_ones_own_gauge() -> None:
    @tp.network
    def net(t, x):
        h = tp.tanh(t.linear(t.n, "in", init=1, name="emb")(x))
        h = tp.tanh(t.linear(t.n, t.n, init="n^(-1/2)", name="w")(h))
        return t.linear(t.outputs, t.n, init="n^(-1)", name="read")(h)

    for optimizer in ("sgd", "adam"):
        own, mup = (tp.solve(net, p, steps=1, optimizer=optimizer) for p in ("own", "mup"))
        assert [(row.b, row.c) for row in own.stored] == [(row.b, row.c) for row in mup.stored]
        assert own.steps[0].c == tuple(row.c[0] for row in own.stored)


def test_largest_rates_have_factors_from_one_width_to_another() -> None:
    """Adam under muP: hidden maps and the readout 1/n, all else as it is."""
    net = MLP(2, "tanh", bias="all")
    found = solve(net, "mup", steps=1, optimizer="adam", verify=False, base=256, width=4096)
    rows = {row.name: (str(row.rate), row.factor) for row in found.largest}
    small, same = ("-1", 1 / 16), ("0", 1.0)
    assert rows == {"W1": same, "b1": same, "W2": small, "b2": same, "W3": small, "b3": same}
    assert {row.where for row in found.largest} == {"h[1]", "h[2]", "the output"}
    with pytest.raises(UsageError, match="width is missing"):
        solve(net, "mup", base=256)


def test_largest_rates_stand_alone_where_steps_are_not_told() -> None:
    """A router n -> 2 whose first update vanishes: its rate is decided by its logits."""

    @tp.network
    def routed(t: Any, x: Any) -> Any:
        h = tp.tanh(t.linear(t.n, "in", name="emb")(x))
        g = tp.softmax(t.linear(1, t.n, axes={"e": 2}, name="router")(h), along="e")
        y = tp.gelu(t.linear(t.n, t.n, axes={"e": 2}, name="experts")(h))
        return t.linear(t.outputs, t.n, name="read")(t.sum(g * y, "e"))

    found = solve(routed, "mup", steps=2, optimizer="adam", verify=False)
    rates = {row.name: (str(row.rate), row.where) for row in found.largest}
    assert rates["router"] == ("-1", "argument of softmax")
    assert rates["experts"][0] == rates["read"][0] == "-1" and rates["emb"][0] == "0"
