"""Estimators of the nonlinearity coefficient against its definition, all pairs enumerated."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isinf, sqrt
from typing import Any

import numpy as np
import pytest
from agree import agree
from layered import Activation, BatchNorm, Bias, Dense, drawn

from tpcalc.errors import EvaluationError, StudyError, UnknownName, UsageError
from tpcalc.nonlinearity.measured import backward, forward, spread_of
from tpcalc.nonlinearity.sample import Sample
from tpcalc.nonlinearity.tensors.coefficient import measured_nlc as nlc
from tpcalc.nonlinearity.tensors.coefficient import single_batch_nlc
from tpcalc.nonlinearity.tensors.functions import function_on, gaussian_inputs
from tpcalc.nonlinearity.tensors.gradients import gradient_nlc

pytestmark = pytest.mark.torch

TANH = Activation("tanh")
PLAIN = [Dense(2.0), TANH, Dense(3.0, outputs=2)]
NORMED = [Dense(2.0), BatchNorm(), TANH, Bias(0.5), Dense(3.0, outputs=2)]


def definition(f: Any, x: Any) -> tuple[float, float, float]:
    """E Tr J Cov J^T, E |J|_F^2 and Tr Cov_f for one batch, from the Jacobian itself."""
    import torch

    full = torch.autograd.functional.jacobian(f, x).numpy()  # (b', out, b, in)
    count = len(x)
    cov = np.cov(x.numpy().T)
    numerator = np.einsum("pobi,ij,pobj->", full, cov, full) / count
    spread = np.trace(np.cov(f(x).detach().numpy().T))
    return float(numerator), float((full**2).sum()) / count, float(spread)


@pytest.fixture
def unit_noise(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Noise that runs through all unit vectors, so that its mean over draws is exact."""

    def patched(entries: int) -> None:
        def noise(self: Sample, shape: tuple[int, ...], what: str, draw: int) -> Any:
            found = np.zeros(entries)
            found[draw] = sqrt(entries)
            return np.resize(found, shape)

        monkeypatch.setattr(Sample, "noise", noise)

    return patched


def test_S4_4_backward_is_exact_over_all_pairs(unit_noise: Callable[[int], None]) -> None:
    """All inputs make a batch, every input meets every other, noise runs over both outputs."""
    x = gaussian_inputs(7, 3, seed=4)
    f = drawn(PLAIN, 5, 3)
    unit_noise(2)
    ((over, lengths),) = backward(*function_on(f, x, 7, 0), 2).values()
    numerator, frobenius, _ = definition(f, x)
    assert over.value == pytest.approx(numerator, rel=1e-12)
    assert lengths.value == pytest.approx(frobenius, rel=1e-12)


def test_S4_4_6_backward_of_a_batch_function_is_exact(
    unit_noise: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sample, "places", lambda self, what, draw: np.arange(len(self)))
    x = gaussian_inputs(6, 3, seed=4)
    f = drawn(NORMED, 5, 3)
    measured = function_on(f, x, 6, 0)
    unit_noise(12)
    ((over, lengths),) = backward(*measured, 12).values()
    numerator, frobenius, spread = definition(f, x)
    assert over.value == pytest.approx(numerator, rel=1e-12)
    assert lengths.value == pytest.approx(frobenius, rel=1e-12)
    own = spread_of(*measured)
    assert own.unit**2 * own.total.value == pytest.approx(spread, rel=1e-12)


def test_S4_4_forward_is_exact_over_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    x = gaussian_inputs(7, 3, seed=4)
    monkeypatch.setattr(Sample, "places", lambda self, what, draw: np.arange(7))
    monkeypatch.setattr(Sample, "repeatable_places", lambda self, what, k: np.roll(np.arange(7), k))
    f = drawn(PLAIN, 5, 3)
    function, sample = function_on(f, x, 7, 0)
    found = forward(function, sample, sample.moves(7))[-1]
    assert found.value == pytest.approx(definition(f, x)[0], rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["backward", "forward"])
@pytest.mark.parametrize("words", [PLAIN, NORMED], ids=["plain", "batch norm"])
def test_both_estimators_agree_with_the_definition(estimator: Any, words: Any) -> None:
    x = gaussian_inputs(8, 4, 1.0, 0.3, seed=1)
    f = drawn(words, 5, 4)
    found = nlc(f, x, batch=8, draws=80, estimator=estimator)
    numerator, frobenius, spread = definition(f, x)
    # The spread of a batch that holds all inputs is exact; the scatter over draws alone remains.
    for value, expected in (
        (found.nlc, sqrt(numerator / spread)),
        (found.frobenius, sqrt(frobenius * np.trace(np.cov(x.numpy().T)) / 4 / spread)),
    ):
        squares = np.array(value.draws) ** 2
        error = squares.std(ddof=1) / sqrt(len(squares))
        assert value.value**2 == pytest.approx(expected**2, abs=5 * error)
        assert 0 < error < 0.2 * expected**2


def test_errors_cover_the_choice_of_inputs() -> None:
    """Cubes of Gaussians have sqrt(27 / 15): over 40 data sets, errors tell their scatter."""
    found = [
        nlc(lambda x: x**3, gaussian_inputs(300, 20, seed=seed), draws=2).nlc for seed in range(40)
    ]
    distances = np.array([(e.value - sqrt(27 / 15)) / e.stderr for e in found])
    assert 0.4 < np.sqrt(np.mean(distances**2)) < 2
    assert np.mean(np.abs(distances) < 3) > 0.9


def test_S4_3_5_linear_functions_have_one() -> None:
    import torch

    matrix = gaussian_inputs(6, 4)
    x = torch.distributions.Exponential(1.0).sample((500, 6)).double() ** 2
    found = nlc(lambda part: part @ matrix + 3, x)
    agree(found.nlc, 1)
    assert found.bias > 1
    cov = matrix.T @ torch.cov(x.T) @ matrix
    assert found.spread.value == pytest.approx(float(cov.trace()))
    agree(single_batch_nlc(lambda part: part @ matrix + 3, x), 1)


def test_S4_5_42_spread_in_two_passes_keeps_small_spreads() -> None:
    """The spread is 1e-10 of the mean: a difference of squares would be noise."""
    x = gaussian_inputs(50, 3)
    exact = float(((x - x.mean(0)) ** 2).sum()) / 49
    found = spread_of(*function_on(lambda part: 1e-10 * part + 1, x, 25, 0))
    assert found.unit**2 * found.total.value == pytest.approx(1e-20 * exact, rel=1e-4)
    assert not found.collapsed
    agree(nlc(lambda part: 1e-10 * part + 1, x, draws=50).nlc, 1, rounding=1e-4)


def test_S4_5_batches_give_the_same_spread_on_average() -> None:
    x = gaussian_inputs(1000, 3)
    function, sample = function_on(lambda part: part, x, 20, 0)
    own = spread_of(function, sample, "batches")
    found = own.total.times(own.unit**2)
    exact = float(((x - x.mean(0)) ** 2).sum()) / 999
    assert found.value == pytest.approx(exact, abs=5 * found.stderr)
    by_hand = np.mean([b.var(0, ddof=1).sum() for b in sample.batches()])
    assert found.value == pytest.approx(by_hand)


def test_S4_42_collapsed_outputs_have_one_by_convention() -> None:
    found = nlc(lambda x: 1e-16 * x + 1, gaussian_inputs(50, 3))
    assert found.collapsed and isinf(found.bias)
    assert (found.nlc.value, found.nlc.stderr) == (1.0, inf)
    assert "output collapse" in found.notes[0]
    few = nlc(lambda x: 1e-14 * x + 1, gaussian_inputs(50, 3))
    assert not few.collapsed and "roundings of their mean" in few.notes[0]
    with pytest.raises(EvaluationError, match="collapse"):
        single_batch_nlc(lambda x: 0 * x, gaussian_inputs(50, 3))


def test_S4_42_amplified_rounding_is_noted() -> None:
    found = nlc(lambda x: (x * 1e13).sin(), gaussian_inputs(250, 3))
    assert found.rounding > 1e-4
    assert nlc(lambda x: x.sin(), gaussian_inputs(250, 3)).rounding < 1e-14
    loud = nlc(lambda x: (x * 1e15).sin(), gaussian_inputs(250, 3))
    assert any("amplify rounding" in note for note in loud.notes)


def test_S4_6_batch_norm_of_torch_uses_the_batch_in_either_mode() -> None:
    import torch

    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    ).double()
    x = gaussian_inputs(100, 5)
    trained = nlc(module.train(), x, batch=20).nlc
    tested = nlc(module.eval(), x, batch=20).nlc
    ahead = nlc(module, x, batch=20, estimator="forward", draws=40).nlc
    assert trained == tested
    agree(tested, ahead)
    assert float(module[1].running_mean.abs().sum()) == 0
    assert int(module[1].num_batches_tracked) == 0


def test_S4_7_gradients_of_a_loss_tell_the_frobenius_variant() -> None:
    import torch

    x, f = gaussian_inputs(500, 6, seed=1), drawn(PLAIN, 5, 6)
    agree(gradient_nlc(f, x), nlc(f, x, draws=40).frobenius)
    weights = torch.tensor([2.0, 0.5], dtype=torch.float64)
    found = gradient_nlc(f, x, torch.zeros(500), lambda y, t: y @ weights + 0 * t)
    start = x.clone().requires_grad_()
    (below,) = torch.autograd.grad((f(start) @ weights).sum(), start)
    ratio = 2 * float((below**2).sum(1).mean()) * float(torch.cov(x.T).trace())
    ratio /= 6 * 4.25 * float(torch.cov(f(x).T).trace())
    assert found.value == pytest.approx(sqrt(ratio))


def test_inputs_beyond_whole_batches_are_noted() -> None:
    found = nlc(lambda x: x, gaussian_inputs(27, 3), batch=10)
    assert found.spread.samples == 20
    assert found.notes[0] == "7 inputs fill no batch of 10 and are left out."


def test_answers_depend_on_the_seed_alone() -> None:
    x, f = gaussian_inputs(60, 4), drawn(PLAIN, 5, 4)
    one, again, other = (nlc(f, x, batch=20, seed=seed) for seed in (1, 1, 2))
    assert one == again and one.nlc.value != other.nlc.value
    assert nlc(f, x.numpy(), batch=20, seed=1) == one


@pytest.mark.parametrize(
    ("f", "x", "said"),
    [
        (lambda x: x, [[1.0, 2.0]], "two inputs or more"),
        (lambda x: x, [[1.0, 2.0], [1.0, 2.0]], "all inputs are equal"),
        (lambda x: x, [[1.0], [float("nan")]], "every number must be finite"),
        (lambda x: x.sum(), [[1.0], [2.0]], "outputs of shape"),
        (lambda x: x.detach() ** 2, [[1.0], [2.0], [4.0]], "do not depend on the inputs"),
        (lambda x: (x - 1).log(), [[1.0], [2.0], [3.0]], "no finite spread"),
        (lambda x: (x - 1).sqrt(), [[1.0], [2.0], [3.0]], "a derivative is not finite"),
    ],
)
def test_bad_functions_and_inputs(f: Any, x: Any, said: str) -> None:
    with pytest.raises((EvaluationError, StudyError), match=said):
        nlc(f, x)


def test_bad_arguments() -> None:
    import torch

    x = gaussian_inputs(20, 3)
    with pytest.raises(UnknownName, match="estimator"):
        nlc(lambda x: x, x, estimator="sideways")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="way to a spread"):
        nlc(lambda x: x, x, passes="one")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="draws is 1"):
        nlc(lambda x: x, x, draws=1)
    with pytest.raises(UsageError, match="a batch has 30 inputs"):
        nlc(lambda x: x, x, batch=30)
    with pytest.raises(StudyError, match="an entry is not finite"):
        nlc(lambda x: x, torch.full((3, 2), inf))
    with pytest.raises(UsageError, match="targets are given"):
        gradient_nlc(lambda x: x, x, x)
    with pytest.raises(UsageError, match="19 targets for 20"):
        gradient_nlc(lambda x: x, x, x[1:], lambda y, t: (y - t).sum(1))
    with pytest.raises(UsageError, match="reduction='none'"):
        gradient_nlc(lambda x: x, x, x, lambda y, t: (y - t).sum())
