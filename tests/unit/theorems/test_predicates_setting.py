"""Hypotheses of theorems, and the sizes that claims are compared with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tpcalc as tp
from tpcalc.errors import UsageError
from tpcalc.exponents import Ex, as_ex
from tpcalc.theorems.integrable.predicates import setting
from tpcalc.theorems.integrable.predicates.case import Case, asked
from tpcalc.theorems.integrable.predicates.claims import (
    Size,
    finite,
    of_order_one,
    of_power,
    vanishing,
)
from tpcalc.training.parameterization import with_rates
from tpcalc.training.parameterizations import lookup

DATA = tp.Samples(((1.0, 0.0), (0.0, 1.0), (0.5, 0.5)), ((1.0,), (-1.0,), (0.5,)))


def case(
    network: object = None,
    parameterization: object = "naive-ip",
    data: tp.Samples | None = None,
    **settings: object,
) -> Case:
    net = tp.MLP(3, "tanh", bias="first") if network is None else network
    derive = settings.pop("derive", False)
    return asked(net, parameterization, data, settings, derive=derive)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "name", "parameters"),
    [
        ("naive_ip", "naive-ip", {}),
        ("ip:-1,-2,-1", "naive-ip", {}),
        ("abc:-1/2,0,1/2;1/2,1,1/2;0,0,0", "naive-ip", {}),
        ("abc:-1/2,0,1/2;1/2,1/2,1/2;0,0,0", "mup", {}),
        ("ip-llr:2", "ip-llr", {"p": 2}),
        ("hp", "hp", {}),
    ],
)
def test_a_parameterization_is_known_by_its_exponents(
    written: str, name: str, parameters: dict[str, int]
) -> None:
    assert setting.named(case(parameterization=written), name, **parameters).met


@pytest.mark.parametrize(
    ("written", "name", "place"),
    [
        ("mup", "naive-ip", "a_2 is 1/2 at step 0, not 1"),
        ("ip-llr", "naive-ip", "c_1 is -2 at step 0, not -1"),
        ("ip:-2,-5/2,-2", "ip-llr", "c_1 is -2 at step 1, not -1"),
        ("ip-llr:2", "ip-llr", "c_1 is -4 at step 0, not -2"),
        ("hp", "mup", "what is left of the initial weights of layer 2 is 1/2 at step 1, not 0"),
        (
            "ip-non-centered:3",
            "naive-ip",
            "the mean of the weights of layer 2 is 3 at step 0, not 0",
        ),
        ("ip-bias", "naive-ip", "c_1 is -2 at step 0, not -1"),
    ],
)
def test_a_parameterization_is_not_another(written: str, name: str, place: str) -> None:
    found = setting.named(case(parameterization=written), name)
    assert not found.met and found.found.endswith(place)


def test_a_name_alone_is_not_enough() -> None:
    other = with_rates(lookup("naive-ip"), lambda layer, step: as_ex(-1))
    assert other.name == "naive-ip"
    assert not setting.named(case(parameterization=other), "naive-ip").met


def test_only_biases_that_are_there_count() -> None:
    naive = lookup("naive-ip")
    rates = with_rates(
        naive,
        lambda layer, step: naive.exponents(3, step).c[layer - 1],
        lambda layer, step: Ex(),
    )
    assert setting.named(case(tp.MLP(3, "tanh"), rates), "naive-ip").met
    found = setting.named(case(tp.MLP(3, "tanh", bias="first"), rates), "naive-ip")
    assert found.found.endswith("the rate exponent of bias 1 is 0 at step 0, not -1")


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("ip-llr", ""),
        ("ip:-3,-1,0", ""),
        ("mup", "a_2 = 1/2"),
        ("ip-non-centered", "the initial weights are not centred"),
        ("ip-bias", "the bias of layer 2 has the exponent 0"),
    ],
)
def test_integrable_scales(written: str, found: str) -> None:
    asked_of = case(tp.MLP(3, "relu", bias="all"), written)
    hypothesis = setting.integrable(asked_of)
    assert hypothesis.met is (found == "")
    assert hypothesis.found == (found or asked_of.run.parameterization.text)


def two(step: int) -> tp.Samples:
    return tp.Samples(((1.0,), (2.0,)), ((1.0, 0.0), (0.0, 1.0)))


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (lambda: case(), "so it is"),
        (lambda: case(tp.ResNet(3, "relu")), "it is a residual network of 3 blocks"),
        (lambda: case(tp.MLP(3, "relu", norm="layer")), "its layers are normalised"),
        (lambda: case(data=two(0), loss="xent"), "it has 2 outputs"),
        (lambda: case(batch=2), "a step takes 2 samples"),
        (lambda: case(lr=lambda layer, step: step), "a learning rate is not above 0"),
        (lambda: case(lr=lambda layer, step: 1 + step), "so it is"),
    ],
)
def test_the_setting_of_the_paper(made: Callable[[], Case], found: str) -> None:
    hypothesis = setting.one_sample(made())
    assert hypothesis.found.startswith(found)
    assert hypothesis.met is (found == "so it is")


def test_data() -> None:
    assert setting.non_orthogonal(case()).met
    assert setting.non_orthogonal(case(data=DATA)).found == "xi_0 . xi_1 = 0"
    once = tp.Samples(((1.0, 0.0),), ((1.0,),))
    assert setting.non_orthogonal(case(data=once)).found == "some are the same"
    assert setting.first_slope(case(data=DATA)).found == "chi_0 = -1"
    fitted = tp.Samples(((1.0, 0.0),), ((0.0,),))
    assert not setting.first_slope(case(data=fitted)).met
    assert setting.first_slope(case(data=fitted, loss="linear")).met


@pytest.mark.parametrize(
    ("bias", "depth", "met"),
    [
        ("none", 3, True),
        ("first", 3, True),
        ("hidden", 3, False),
        ("all", 3, False),
        ("hidden", 1, True),
        ("all", 1, False),
    ],
)
def test_biases(bias: str, depth: int, met: bool) -> None:
    assert setting.bias_at_most_first(case(tp.MLP(depth, "relu", bias=bias))).met is met


def test_arguments_are_checked() -> None:
    with pytest.raises(UsageError, match="derive"):
        case(derive=1)  # type: ignore[arg-type]


HALF = Ex.number(-0.5)


@pytest.mark.parametrize(
    ("size", "small", "one", "stays"),
    [
        (Size(HALF, True), True, False, True),
        (Size(HALF, False), True, False, True),
        (Size(Ex(), True), False, True, True),
        (Size(Ex(), False), None, None, True),
        (Size(-HALF, True), False, False, False),
        (Size(-HALF, False), None, None, None),
        (Size(None, True), True, False, True),
        (Size(None, False), None, None, None),
        (Size(Ex.symbol("a"), True), None, None, None),
    ],
)
def test_a_bound_contradicts_from_below_only(
    size: Size, small: bool | None, one: bool | None, stays: bool | None
) -> None:
    found = {"f": size}
    assert vanishing("f", found).agrees is small
    assert of_order_one("f", found, "order one").agrees is one
    assert finite("f", found).agrees is stays


def test_powers_are_told_with_a_word() -> None:
    found = {"f": Size(HALF, True)}
    assert of_power("f", found, HALF) == of_power("f", found, as_ex(Ex.number(-0.5)))
    assert of_power("f", found, HALF).stated == "n^(-1/2): vanishing"
    assert of_power("f", found, -HALF).stated == "n^(1/2): exploding"
    assert of_power("f", found, Ex()).agrees is False
    assert of_power("f", {}, Ex()).derived == ""


def test_the_largest_of_several_is_told() -> None:
    found = {"a": Size(-as_ex(1), True), "b": Size(HALF, False), "c": Size(None, True)}
    assert vanishing("", found).derived == "at most n^(-1/2)"
    assert vanishing("", {"c": Size(None, True)}).derived == "identically 0"
    assert vanishing("", found | {"d": Size(None, False)}).derived == "of unknown size"
    assert vanishing("", found, "").agrees is None


def test_an_input_of_zeros_needs_a_bias() -> None:
    zeros = tp.Samples(((0.0, 0.0), (0.0, 1.0)), ((1.0,), (1.0,)))
    for bias, data, met in (("none", zeros, False), ("first", zeros, True), ("none", DATA, True)):
        assert setting.first_input(case(tp.MLP(3, "relu^2", bias=bias), data=data)).met is met
