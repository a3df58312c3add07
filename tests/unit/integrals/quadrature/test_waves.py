"""Functions with kinks without end, under Gaussians that reach over many of them."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from time import process_time

import numpy as np
import pytest
from layered import Activation, Dense, Input, Lines, chain

from tpcalc import signal
from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr, Var
from tpcalc.functions.form import period
from tpcalc.integrals.quadrature.broken import broken_gap, broken_moments
from tpcalc.integrals.quadrature.layer import prepared
from tpcalc.integrals.quadrature.waves import wave_gap, wave_moments
from tpcalc.meanfield.activations.calibrate import dilated

SAWTOOTH = Activation("sawtooth").tau


def one_layer(tau: Expr, q: float, c: float) -> Lines:
    return chain(Input(q, c), [Dense(1), Activation(tau), Dense(1)])


@pytest.mark.parametrize("amplitude", ["1", "1/2", "3"])
def test_S4_44_a_sawtooth_at_any_input_scale(amplitude: str) -> None:
    """E f'^2 = 1 and Var f = a^2 / 3, so that NLC^2 = 3 (q - c) / a^2 for wide inputs."""
    tau, a = Activation(f"sawtooth:{amplitude}").tau, float(Fraction(amplitude))
    for q in (100.0, 144.0, 150.0, 225.0, 400.0, 1e4, 1e6, 1e12):
        for share in (0.0, 0.5):
            found = signal.nlc(one_layer(tau, a * a * q, a * a * q * share))
            wanted = sqrt(3 * q * (1 - share))
            assert abs(found.value - wanted) <= found.stderr + 1e-15 * wanted
            assert found.stderr <= 1e-8 * wanted


def test_the_wide_form_meets_the_sum_over_kinks() -> None:
    """Where both hold, for all gaps, with slopes that do not start at 0 and unequal stretches."""
    for tau in (SAWTOOTH, dilated(SAWTOOTH, 0.8, 0.3) + 0.25, -2 * SAWTOOTH):
        pair = prepared(tau)
        assert pair is not None and pair.line is not None and pair.wave is not None
        for q in (130.0, 170.0):
            for x in (1e-20, 1e-9, 1e-4, 1e-3, 0.01, 0.1, 0.9, 1.3, 1.99, 1.9999):
                left = broken_gap(pair.line, q, x * q)
                right = wave_gap(pair.wave, q, x * q)
                assert abs(left.value - right.value) <= left.error + right.error
                assert right.error <= 1e-9 * right.value + 1e-13
                if x > 1.5:
                    continue
                less, more = (wave_gap(pair.wave, q, x * q * (1 + h)) for h in (-1e-5, 1e-5))
                assert right.by_gap * x * q == pytest.approx(
                    (more.value - less.value) / 2e-5, rel=1e-5, abs=1e-9
                )
            for one, other in zip(
                broken_moments(pair.line, q) or (), wave_moments(pair.wave, q) or (), strict=True
            ):
                assert abs(one.value - other.value) <= one.error + other.error


def test_periods() -> None:
    tau = dilated(SAWTOOTH, -0.5, 1)
    assert period(tau * tau + 2) == 8
    assert period(tau + SAWTOOTH) is None  # 8 would do; the form does not say so
    assert period(SAWTOOTH * Var(0)) is None
    assert period(Activation("tanh").tau) is None


def test_what_bends_too_often_is_refused_soon() -> None:
    """No period, kinks on 128 places: as a difference of averages where they are few standard
    deviations apart, and a refusal beyond."""
    tau = SAWTOOTH * Activation("tanh").tau
    found = signal.nlc(one_layer(tau, 30.0, 3.0))
    rng = np.random.default_rng(0)
    s = 3**0.5 * rng.standard_normal(400_000) + 27**0.5 * rng.standard_normal((2, 400_000))
    wave = 1 - np.abs((s + 1) % 4 - 2)
    gap = ((wave * np.tanh(s))[0] - (wave * np.tanh(s))[1]) ** 2 / 2
    slope = (np.sign(2 - (s + 1) % 4) * np.tanh(s) + wave / np.cosh(s) ** 2) ** 2
    assert found.value == pytest.approx(sqrt(27 * slope.mean() / gap.mean()), rel=0.02)
    began = process_time()
    with pytest.raises(EvaluationError, match="bends too often"):
        signal.nlc(one_layer(tau, 1e4, 5e3))
    assert process_time() - began < 8  # about 2 on a free machine
