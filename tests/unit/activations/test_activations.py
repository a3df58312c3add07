"""Every activation: its facts, its text, its derivative, its behaviour at 0 and far out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from tpcalc.activations.activation import Activation
from tpcalc.activations.entries import REGISTRY, atom, lookup
from tpcalc.activations.verify import verify
from tpcalc.errors import (
    NotDifferentiable,
    ProgramError,
    ScaleError,
    StudyError,
    TraceError,
    UnknownName,
)
from tpcalc.exponents import Ex
from tpcalc.functions import Atom, Call, Fn, const
from tpcalc.functions.parse import parse_fn
from tpcalc.functions.tape import evaluate

# Members with parameters; every entry without one is added below.
GIVEN = [
    "relu^1",
    "relu^2",
    "relu^3",
    "relu^3/2",
    "relu^1/2",
    "relu^5",
    "leaky_relu",
    "leaky_relu:0.2",
    "leaky_relu:1",
    "leaky_relu:-1",
    "leaky_relu:0",
    "elu",
    "elu:0.5",
    "elu_slope",
    "elu_slope:2",
    "poly:1,0,1/2",
    "poly:0,-1,0,2",
    "gaussian",
    "gaussian:1/2",
    "poly:3",
    "poly:0,0,0,0,1/24",
    "sawtooth",
    "sawtooth:1/2",
    "square_wave",
]
PLAIN = [name for name, family in REGISTRY.items() if not family.parameters]
ALL = PLAIN + GIVEN


def slope_at(activation: Activation, z: float) -> float:
    return float(evaluate(activation.fn.by(0), [np.array([z])])[()].item())


def test_the_catalogue_holds_what_it_promises() -> None:
    promised = {"relu", "relu_pow", "leaky_relu", "abs", "identity", "tanh", "erf", "sin", "cos"}
    promised |= {"sigmoid", "softplus", "gelu", "elu", "selu", "swish", "poly", "square", "exp"}
    promised |= {"log", "sqrt", "step", "sign", "normal_cdf", "normal_pdf", "gaussian"}
    assert promised <= set(REGISTRY)
    covered = {lookup(text).family.name for text in ALL}
    assert covered == set(REGISTRY), "an entry with parameters needs a member in GIVEN"


@pytest.mark.parametrize("text", ALL)
def test_declared_facts_hold(text: str) -> None:
    assert verify(lookup(text)) == ()


@settings(max_examples=20)
@given(st.fractions(min_value=Fraction(1, 4), max_value=6, max_denominator=4))
def test_facts_of_every_power_of_relu_hold(p: Fraction) -> None:
    assert verify(REGISTRY["relu_pow"](p)) == ()


@settings(max_examples=20)
@given(
    st.lists(st.fractions(-3, 3, max_denominator=4), min_size=1, max_size=6).filter(any),
    st.fractions(-2, 2, max_denominator=8),
)
def test_facts_of_polynomials_and_leaky_relus_hold(
    coefficients: list[Fraction], slope: Fraction
) -> None:
    assert verify(REGISTRY["poly"](*coefficients)) == ()
    assert verify(REGISTRY["leaky_relu"](slope)) == ()


@pytest.mark.parametrize("text", ALL)
def test_text_reads_back_as_the_same_function(text: str) -> None:
    found = lookup(text)
    assert lookup(found.text) == found
    assert lookup(found) is found
    functions = [found.fn]
    try:
        functions.append(found.fn.by(0))
        functions.append(functions[-1].by(0))
    except NotDifferentiable:
        assert found.facts.kinks
    for fn in functions:
        assert parse_fn(fn.text, 1, 0, atom) == fn


@pytest.mark.parametrize(
    ("spelling", "text"),
    [
        ("relu^2", "relu_pow[2]"),
        ("ReLU^1.5", "relu_pow[3/2]"),
        ("relu^1", "relu"),
        ("relu_pow:2", "relu_pow[2]"),
        ("leaky_relu:0.2", "leaky_relu[1/5]"),
        ("leaky-relu[1/5]", "leaky_relu[1/5]"),
        ("leaky_relu", "leaky_relu[1/100]"),
        ("linear", "identity"),
        ("silu", "swish"),
        ("poly:1,0,1/2,0", "poly[1, 0, 1/2]"),
        (" tanh ", "tanh"),
    ],
)
def test_spellings(spelling: str, text: str) -> None:
    assert lookup(spelling).text == text
    assert lookup(spelling) == lookup(text)


def test_a_power_may_be_a_symbol() -> None:
    found = lookup("relu^p")
    p = Ex.symbol("p")
    assert (found.facts.homogeneity, found.facts.growth, found.facts.kinks) == (p, p, (0.0,))
    assert found.text == "relu_pow[p]" and lookup(found.text) is found is lookup("relu_pow:p")
    assert REGISTRY["relu_pow"](p) is found != lookup("relu^q")
    degrees = []
    fn = found.fn
    for _ in range(2):
        fn = fn.by(0)
        assert isinstance(fn.expr, Call)
        degrees.append(fn.expr.atom.facts.homogeneity)
    assert degrees == [p - 1, p - 2]
    assert found.fn.by(0) == lookup("relu^p-1").fn and fn.text == "relu_pow[-2 + p](x0)"
    assert REGISTRY["relu_pow"](p - p + 2) is lookup("relu^2")
    z, degree = sympy.symbols("z p", positive=True)
    assert lookup("relu_pow:p/2+1").sympy(z) == z ** (degree / 2 + 1)


def test_a_symbolic_power_has_no_values() -> None:
    found = lookup("relu^p")
    calls = (
        lambda: found.evaluate(np.array([1.0])),
        lambda: evaluate(found.fn.by(0), [2.0]),
        lambda: verify(found),
        lambda: evaluate(Fn(found(const(2)), 1), [np.ones(3)]),
    )
    for call in calls:
        with pytest.raises(ScaleError, match=r"has no values: its power.* as in relu\^2"):
            call()
    with pytest.raises(ProgramError, match="'p' is no argument"):
        parse_fn(found.fn.text, 1, 0, atom)


def test_equal_functions_are_one_atom() -> None:
    assert lookup("relu^2").function is lookup("relu_pow[2]").function
    assert atom("relu_pow", (1,)) is lookup("relu").function
    assert atom("leaky_relu", (0.2,)) is atom("leaky_relu", (Fraction(1, 5),))
    assert lookup("leaky_relu:0.2") != lookup("leaky_relu:0.3")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("rellu", UnknownName, "relu"),
        ("", UnknownName, "no activation"),
        ("rellu^2", UnknownName, "relu"),
        ("tanh^2", StudyError, "no powers of tanh"),
        ("relu^", StudyError, "ends before its parameter"),
        ("leaky_relu:", StudyError, "ends before its parameter"),
        ("relu^x y", ScaleError, "'x y' is not an exponent"),
        ("relu^1/p", ScaleError, "'1 / p' is not a polynomial"),
        ("relu^nan", StudyError, "p of relu_pow must be a number, not 'nan'"),
        ("relu^0*p", StudyError, "must be larger than 0, not 0"),
        ("leaky_relu:p", StudyError, "slope of leaky_relu must be a number, not 'p'"),
        ("relu^0", StudyError, "must be larger than 0, not 0"),
        ("relu^-1", StudyError, "must be larger than 0, not -1"),
        ("relu^1/0", StudyError, "must be a number"),
        ("relu:2", StudyError, "it takes none"),
        ("elu:1,2", StudyError, "it takes alpha"),
        ("relu_pow", StudyError, r"needs its parameter 'p' \(power\)"),
        ("poly", StudyError, "needs its parameter 'c'"),
        ("poly:0,0", StudyError, "needs a coefficient other than 0"),
        ("poly:1,,2", StudyError, "c of poly must be a number"),
        ("poly:1e999999999", StudyError, "c of poly is 1e999999999; it must be finite"),
        (None, StudyError, "named by a text"),
    ],
)
def test_bad_names_and_parameters(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lookup(text)


def test_atoms_of_a_program_text() -> None:
    assert isinstance(atom("relu_pow", (Fraction(2),)), Atom)
    with pytest.raises(TraceError, match="written out"):
        atom("square")
    with pytest.raises(UnknownName, match="'tanh'"):
        atom("tanhh")


@pytest.mark.parametrize(
    ("text", "value", "slope"),
    [
        ("relu", 0.0, 0.0),
        ("relu^2", 0.0, 0.0),
        ("leaky_relu:0.2", 0.0, 0.2),
        ("abs", 0.0, 0.0),
        ("elu:0.5", 0.0, 0.5),
        ("elu", 0.0, 1.0),
        ("selu", 0.0, 1.0507009873554805 * 1.6732632423543772),
    ],
)
def test_at_a_kink_the_left_slope_is_taken(text: str, value: float, slope: float) -> None:
    found = lookup(text)
    assert found.evaluate(np.array([0.0]))[0] == value
    assert slope_at(found, 0.0) == pytest.approx(slope, abs=0)


def test_steps_and_signs_at_zero() -> None:
    z = np.array([-2.0, -0.0, 0.0, 3.0])
    assert lookup("step").evaluate(z).tolist() == [0, 0, 0, 1]
    assert lookup("sign").evaluate(z).tolist() == [-1, 0, 0, 1]


@pytest.mark.parametrize("text", ["step", "sign", "elu_slope:2", "relu^1/2", "selu_slope"])
def test_no_derivative_where_there_is_none(text: str) -> None:
    with pytest.raises(NotDifferentiable):
        lookup(text).fn.by(0)


FAR = np.array([-1e6, -1e4, -750.0, -90.0, -40.0, 40.0, 90.0, 750.0, 1e4, 1e6])
TAME = [text for text in ALL if lookup(text).family.name not in ("exp", "log", "sqrt")]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("text", TAME)
def test_far_out_nothing_overflows(text: str, dtype: type) -> None:
    found = lookup(text)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert np.all(np.isfinite(found.evaluate(FAR.astype(dtype))))
        try:
            assert np.all(np.isfinite(evaluate(found.fn.by(0), [FAR.astype(dtype)])))
        except NotDifferentiable:
            assert found.facts.kinks


@pytest.mark.parametrize("text", [text for text in ALL if text != "poly:3"])
def test_single_precision_stays_single(text: str) -> None:
    z = np.linspace(0.1, 2, 5, dtype=np.float32)
    assert lookup(text).evaluate(z).dtype == np.float32


@pytest.mark.parametrize("text", [text for text in ALL if text != "poly:3"])
def test_nan_shows(text: str) -> None:
    assert np.isnan(lookup(text).evaluate(np.array([np.nan]))[0])


def test_values_near_and_far_from_zero_are_accurate() -> None:
    tiny = np.array([-1e-9, -1e-12])
    np.testing.assert_allclose(lookup("elu").evaluate(tiny), np.expm1(tiny), rtol=1e-14)
    low = np.array([-30.0, -60.0, -300.0])
    np.testing.assert_allclose(lookup("sigmoid").evaluate(low), np.exp(low), rtol=1e-12)
    np.testing.assert_allclose(lookup("softplus").evaluate(low), np.exp(low), rtol=1e-12)


def test_selu_keeps_mean_zero_and_variance_one() -> None:
    selu = lookup("selu")

    def density(z: float) -> float:
        return float(np.exp(-z * z / 2) / np.sqrt(2 * np.pi))

    for power, wanted in ((1, 0.0), (2, 1.0)):
        total = sum(
            quad(lambda z: float(selu.evaluate(z)) ** power * density(z), *ends, epsabs=1e-12)[0]  # noqa: B023
            for ends in ((-12, 0), (0, 12))
        )
        assert total == pytest.approx(wanted, abs=1e-9)


def test_polynomials_are_written_out() -> None:
    assert lookup("poly:1,0,1/2").fn.text == "1 + 1/2*x0**2"
    assert lookup("square").fn.text == "x0**2"
    assert lookup("identity").fn.text == "x0"
