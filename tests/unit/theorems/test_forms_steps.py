"""Closed forms of first steps: what they refuse, and identities between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from agree import agree

import tpcalc as tp
from tpcalc.errors import EvaluationError, NotDifferentiable, UsageError
from tpcalc.results import Method, Status
from tpcalc.theorems.integrable.forms.bias import bias_step
from tpcalc.theorems.integrable.forms.known import lazy_step, mup_step, tangent_kernel
from tpcalc.theorems.integrable.forms.llr import llr_step, llr_step_by_derivatives
from tpcalc.theorems.integrable.forms.llr_later import llr_second_step
from tpcalc.theorems.integrable.forms.naive import naive_degenerate, naive_two_layers
from tpcalc.theorems.integrable.forms.non_centered import non_centered_start, non_centered_step

K = (1.74, 0.93, 2.35)
A, B = (0.6, -0.3), (0.1, 0.7)


def kappa(a: float, b: float, c: float) -> float:
    """The arc-cosine kernel E relu(X) relu(Y)."""
    theta = math.acos(c / math.sqrt(a * b))
    shape = math.sin(theta) + (math.pi - theta) * math.cos(theta)
    return math.sqrt(a * b) / (2 * math.pi) * shape


def test_lambdas_of_relu_as_printed() -> None:
    """lambda_1 by the arc-cosine kernel, lambda_l = c lambda_{l-1} V_h V_dx / (2 pi), and f_1."""
    depth, eta = 4, 10.0
    found = llr_step("relu", depth, k=K, eta=eta)
    value = kappa(K[0], K[2] + (eta * K[1]) ** 2 * 2.0 ** -(depth - 1), K[1])
    before = value
    for layer in range(1, depth + 1):
        if layer > 1:
            h, dx = K[0] / 2 ** (layer - 1), 2.0 ** -(depth - layer)
            before, value = value, eta * value * math.sqrt(h * dx) / (2 * math.pi)
        agree(found.lambdas[layer - 1].value, value)
    agree(found.f.value, eta * before / 4 + eta * value)


def test_inputs_or_their_covariances() -> None:
    k = [sum(x * y for x, y in zip(u, v, strict=True)) + 1 for u, v in ((A, A), (A, B), (B, B))]
    agree(llr_step("relu", 2, A, B, eta=3).f.value, llr_step("relu", 2, k=k, eta=3).f.value)
    without = [value - 1 for value in k]
    agree(
        llr_step("relu", 2, A, B, eta=3, bias="none").f.value,
        llr_step("relu", 2, k=without, eta=3).f.value,
    )


@pytest.mark.parametrize("act", ["relu", "relu^2", "tanh"])
def test_at_the_training_input(act: str) -> None:
    """Where the query is the training input, X and Y are one Gaussian: no rounding splits them."""
    near = (*A[:-1], A[-1] + 1e-7)
    forms: list[Callable[..., Any]] = [partial(llr_step, act, 2), partial(mup_step, act, 2)]
    for form in forms:
        at, beside = form(A, A, eta=0.1), form(A, near, eta=0.1)
        tolerance = 1e-5 * abs(float(at.f)) + 5 * (at.f.value.stderr + beside.f.value.stderr)
        assert float(at.f) == pytest.approx(float(beside.f), abs=tolerance)


def test_functions_stand_for_names() -> None:
    own = llr_step(lambda z: tp.relu(z) ** 2, 2, A, B, eta=0.1)
    agree(own.f.value, llr_step("relu^2", 2, A, B, eta=0.1).f.value)


@pytest.mark.parametrize("act", ["relu", "relu^2"])
def test_two_forms_of_three_layers(act: str) -> None:
    one = llr_step(act, 3, (0.3, 0.1), (0.2, -0.1), eta=0.5, chi=-0.7)
    two = llr_step_by_derivatives(act, 3, (0.3, 0.1), (0.2, -0.1), eta=0.5, chi=-0.7)
    assert float(one.f) == pytest.approx(float(two.f), rel=1e-11)


def test_odd_powers_are_exactly_zero_from_the_second_layer_on() -> None:
    found = llr_step(lambda z: z**3, 3, (0.1, 0.2), (0.2, -0.1), eta=0.1)
    for form in (*found.lambdas[1:], found.f):
        assert (float(form), form.value.status) == (0.0, Status.EXACT)


def test_slopes_at_a_kink_are_not_made_up() -> None:
    """A query of size 0 leaves h_1^2 at 0, where the slope of ReLU is not decided."""
    found = llr_step("relu", 2, k=(1.0, 0.0, 0.0), eta=1.0)
    assert (float(found.f), found.nus) == (0.0, ())


def test_samples_are_said_to_be_samples() -> None:
    one, two = (mup_step("tanh", 2, A, B, eta=1, seed=seed).f.value for seed in (1, 2))
    assert (one.method, one.seed, two.seed) == (Method.PARTICLES, 1, 2)
    assert one.value != two.value
    agree(one, two)


def test_kernel_and_step_of_ntk() -> None:
    found = tangent_kernel("relu", 3, k=K)
    assert sum(map(float, found.layers)) == pytest.approx(float(found.kernel), rel=1e-14)
    assert float(found.layers[-1]) == float(found.last_layer)
    step = lazy_step("relu", 3, k=K, eta=2, chi=0.5)
    assert float(step.change) == pytest.approx(-float(found.kernel), rel=1e-14)


def test_two_layers_of_what_is_flat_at_zero_learn_nothing() -> None:
    assert str(naive_two_layers("relu^2", k=K, eta=1).f.value) == "0 (exact)"


def test_weak_dependence_on_the_data() -> None:
    """IP-bias: the training input enters through layer 1 alone, by k(xi_0, xi)."""
    near, far = (bias_step("relu", 4, (x, 0.2), B, eta=1.0) for x in (0.1, 0.4))
    assert float(near.kappas[0]) != float(far.kappas[0])
    gaps = [abs(float(a) - float(b)) for a, b in zip(near.kappas, far.kappas, strict=True)]
    assert gaps[0] > gaps[1] > gaps[3] > 0


def test_means_of_non_centered_weights() -> None:
    same = non_centered_step("relu", 3, k=K, eta=0.5, u=(2, 2, 2))
    agree(same.f.value, non_centered_step("relu", 3, k=K, eta=0.5, u=2).f.value)
    assert len(same.entries) == 0
    assert len(non_centered_step("relu", 4, k=K, eta=0.5).entries) == 1


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: llr_step("relu", 1, k=K, eta=1), "at least 2"),
    (lambda: llr_step("sigmoid", 3, k=K, eta=1), "naive_degenerate"),
    (lambda: llr_step("selu", 3, k=K, eta=1), "no scale-free pass"),
    (lambda: llr_step("relu", 3, k=K, eta=0), "nothing is learnt"),
    (lambda: llr_step("relu", 3, k=K, eta=1, chi=0), "nothing is learnt"),
    (lambda: llr_step("relu^p", 3, k=K, eta=1), "no values"),
    (lambda: llr_step("relu", 3, A, B, eta=1, bias="all"), "biases in the first layer"),
    (lambda: llr_step("relu", 3, A, eta=1), "xi is not given"),
    (lambda: llr_step("relu", 3, A, B, eta=1, k=K), "both inputs"),
    (lambda: llr_step("relu", 3, A, (0.1,), eta=1), "1 and 2 features"),
    (lambda: llr_step("relu", 3, k=(1, 2), eta=1), "it must have 3"),
    (lambda: llr_step("relu", 3, k=(1, 2, 1), eta=1), "no covariances"),
    (lambda: llr_step("relu", 3, (0, 0), B, eta=1, bias="none"), "no covariances"),
    (lambda: llr_step("relu", 3, k=K, eta="fast"), "must be a number"),  # type: ignore[arg-type]
    (lambda: llr_second_step("relu", 2, A, B, A, eta=1), "decide its slope"),
    (lambda: llr_second_step("tanh", 2, A, B, A, eta=1), "tp.limit"),
    (lambda: llr_second_step("relu^3", 2, A, B, A, eta=1), "miss the tails"),
    (lambda: llr_second_step("relu^2", 2, A, B, A, eta=(1, 1, 1)), "the steps are 2"),
    (lambda: naive_degenerate("tanh", 3, eta=1), "is 0 at 0"),
    (lambda: naive_degenerate("sigmoid", 2, eta=1), "naive_two_layers"),
    (lambda: naive_two_layers("selu", k=K, eta=1), "no slope at 0"),
    (lambda: non_centered_start("relu", 4, k00=1.0, u=-1), "has a kink"),
    (lambda: non_centered_start("relu", 3, k00=1.0, u=0), "is 0"),
    (lambda: non_centered_start("relu", 3, k00=1.0, u=(1, 1)), "the layers 2..L\\+1 are 3"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_refusals(call: Callable[[], object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        call()


def test_jumps_have_no_gradient() -> None:
    with pytest.raises((NotDifferentiable, UsageError)):
        llr_step("step", 2, k=K, eta=1)
    with pytest.raises(NotDifferentiable):
        tangent_kernel("sign", 2, k=K)


LEAVE_THE_RANGE: list[Callable[[], object]] = [
    lambda: llr_step("relu^3", 4, A, B, eta=1),  # f_1 is larger than a float
    lambda: llr_step("relu^3", 3, A, B, eta=5),
    lambda: mup_step("relu^3", 3, (0.3, 0.1), (0.2, -0.1), eta=5),
    lambda: llr_step_by_derivatives("relu", 2, A, B, eta=1e-200),  # f_1 is 1e-201, not 0
    lambda: llr_step_by_derivatives("relu^2", 3, A, B, eta=1e-100),
]


@pytest.mark.slow
@pytest.mark.parametrize("call", LEAVE_THE_RANGE)
def test_numbers_that_no_float_holds_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(EvaluationError, match="floating-point range"):
        call()
