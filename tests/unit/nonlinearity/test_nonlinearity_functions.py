"""Local linearity, robustness, tangent kernels, linear fits and Jacobians against their meaning."""

from __future__ import annotations

from math import inf, pi, sqrt
from typing import Any

import numpy as np
import pytest
from agree import agree
from layered import Activation, BatchNorm, Bias, Dense, drawn

from tpcalc.errors import EvaluationError, UsageError
from tpcalc.nonlinearity.tensors.coefficient import (
    error_radius,
    linear_part,
    local_linearity,
    noise_errors,
)
from tpcalc.nonlinearity.tensors.functions import elementlike_inputs, gaussian_inputs
from tpcalc.nonlinearity.tensors.gradients import parameter_growth, tangent_transfer
from tpcalc.nonlinearity.tensors.jacobians import (
    jacobian,
    jacobian_moments,
    jacobian_values,
    layer_variances,
)

pytestmark = pytest.mark.torch

TANH = Activation("tanh")


def test_regions_shrink_with_the_frequency() -> None:
    """sin(w x) is linear within a few hundredths of 1 / w; C is proportional to w."""
    x = gaussian_inputs(500, 1)
    slow, fast = (
        local_linearity(lambda x, w=w: (w * x).sin(), x, batch=1, samples=200, seed=3)
        for w in (100.0, 1000.0)
    )
    assert fast.median.value / slow.median.value == pytest.approx(10, rel=0.25)
    beyond = local_linearity(lambda x: (1e9 * x).sin(), x, batch=1, samples=20, smallest=1e-3)
    assert beyond.beyond == 20 and beyond.median.value == inf


def test_batches_are_seen_one_by_one() -> None:
    """The sum over a batch: with batch norm each sample has the moments of its own batch."""
    network = drawn([Dense(1.0), BatchNorm(), TANH], 5, 4)
    x = gaussian_inputs(60, 4)
    found = local_linearity(network, x, batch=6, samples=7, per_decade=4, smallest=1e-3)
    again = local_linearity(network, x, batch=6, samples=3, per_decade=4, smallest=1e-3)
    assert found.values[:3] == again.values
    with pytest.raises(UsageError, match="factor is 1; it must be above 1"):
        local_linearity(network, x, factor=1)


def classifier(x: Any) -> Any:
    """Class 1 where the first feature is positive."""
    import torch

    return torch.stack([-x[:, 0], x[:, 0]], 1)


def test_S4_10_errors_under_noise() -> None:
    """w u + (1 - w) x changes its sign where the angle of (w, 1 - w) says: an arctangent."""
    x = gaussian_inputs(4000, 2, seed=8)
    found = noise_errors(classifier, x, (x[:, 0] > 0).long(), [0.0, 0.3, 1.0])
    assert found[0].value == 0
    agree(found[1], np.arctan(0.3 / 0.7) / pi)
    agree(found[2], 0.5)


def test_S4_10_radius_in_which_errors_do_not_grow() -> None:
    """Inputs +-1 and directions of length 1 or so: signs change only near distance 1."""
    import torch

    x = torch.tensor([[1.0], [-1.0]] * 50, dtype=torch.float64)
    labels = (x[:, 0] > 0).long()
    near = error_radius(classifier, x, labels, batch=20, samples=5)
    assert 1.0 <= near.value < 1.2
    steep = error_radius(lambda x: classifier((40 * x).sin()), x, labels, batch=20)
    # sin 40 x changes its sign a distance (13 pi - 40) / 40 away.
    assert steep.value == pytest.approx(40 / (13 * pi - 40), rel=0.15)
    with pytest.raises(UsageError, match="3 labels for 100"):
        error_radius(classifier, x, [0, 1, 0])


def test_S4_11_transfer_of_a_step() -> None:
    """Gradients of the mean losses over both shards, by hand."""
    import torch

    torch.manual_seed(0)
    network = drawn([Dense(1.0), TANH, Dense(outputs=1)], 8, 3)
    parameters = tuple(network.parameters.values())
    x, y = gaussian_inputs(30, 3), torch.randn(30, 1, dtype=torch.float64)
    there = gaussian_inputs(20, 3, seed=1), torch.randn(20, 1, dtype=torch.float64)
    mse = torch.nn.functional.mse_loss
    found = tangent_transfer(network, parameters, mse, (x, y), there, batch=8)
    assert not any(p.requires_grad for p in parameters)
    for p in parameters:
        p.requires_grad_()
    flat = [
        torch.cat([g.flatten() for g in torch.autograd.grad(mse(network(a), b), parameters)])
        for a, b in ((x, y), there)
    ]
    assert found.value == pytest.approx(float(flat[0] @ flat[1] / (flat[0] @ flat[0])))
    assert found.stderr > 0
    same = tangent_transfer(network, parameters, mse, (x, y), (x, y), batch=7)
    assert same.value == pytest.approx(1.0)
    with pytest.raises(EvaluationError, match="is 0"):
        tangent_transfer(network, parameters, lambda a, b: 0 * mse(a, b), (x, y), there)
    with pytest.raises(UsageError, match="30 inputs and 20 targets"):
        tangent_transfer(network, parameters, mse, (x, there[1]), there)
    with pytest.raises(UsageError, match="no pair of tensors"):
        tangent_transfer(network, parameters, mse, (x, y), (x,))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no number of torch"):
        tangent_transfer(network, parameters, lambda a, b: 2.0, (x, y), there)
    with pytest.raises(UsageError, match="loss is a function that raises ValueError"):
        tangent_transfer(network, parameters, lambda a, b: int("a"), (x, y), there)


def test_S4_27_growth_of_parameters() -> None:
    import torch

    start = [torch.ones(2, 2), torch.zeros(3)]
    assert parameter_growth([3 * p for p in start], start) == 3
    with pytest.raises(UsageError, match="0 at the start"):
        parameter_growth(start, start[1:])


def test_S4_26_variances_of_layers() -> None:
    import torch

    words = [Dense(), Dense(2.0, "orthogonal"), Bias(0.5), TANH, Dense(3.0, rank=0.5)]
    found = layer_variances(drawn(words, 400, 400))
    assert [(row.layer, row.kind) for row in found] == [
        (1, "weights"),
        (2, "weights"),
        (3, "biases"),
        (5, "weights"),
        (6, "weights"),
    ]
    assert found[1].value == pytest.approx(2.0, rel=1e-9)
    assert [found[2].value, found[3].value] == pytest.approx([0.5, 3.0], rel=0.4)
    assert found[4].value == pytest.approx(0.5, rel=1e-9)  # columns of length 1, half as many
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.LayerNorm(2))
    with pytest.raises(UsageError, match="'2' has parameters and is not linear"):
        layer_variances(module)
    rows = layer_variances(module[:2])
    weight = module[0].weight.detach().double()
    assert rows[0].value == pytest.approx(float((weight**2).sum()) / 2)
    assert rows[0].layer == "0"
    with pytest.raises(UsageError, match="no network"):
        layer_variances(3)


def test_linear_fits_are_those_of_numpy() -> None:
    x = gaussian_inputs(300, 4, 1.0, 0.3, seed=2)
    network = drawn([Dense(2.0), TANH, Dense(outputs=3)], 10, 4)
    found = linear_part(network, x, batch=100)
    design = np.column_stack([x.numpy(), np.ones(300)])
    fit, *_ = np.linalg.lstsq(design, network(x).numpy(), rcond=None)
    assert found.slope.numpy() == pytest.approx(fit[:4])
    assert found.offset.numpy() == pytest.approx(fit[4])
    shares = found.linear.value + found.constant.value + found.nonlinear.value
    assert shares == pytest.approx(1.0)
    rest = network(x).numpy() - design @ fit
    assert found.rest(network)(x).numpy() == pytest.approx(rest)
    units = x.new_tensor([1.0, 1e-7, 1e5, 1.0])
    scaled = linear_part(lambda y: network(y / units), x * units, batch=100)
    assert scaled.linear.value == pytest.approx(found.linear.value)
    with pytest.raises(UsageError, match="cannot show a linear fit"):
        linear_part(network, gaussian_inputs(5, 4))
    with pytest.raises(UsageError, match="do not span"):
        linear_part(network, x * x.new_tensor([1.0, 0.0, 1.0, 1.0]))
    with pytest.raises(EvaluationError, match="all 0"):
        linear_part(lambda x: 0 * x, x)


def test_shares_of_a_fit_to_few_inputs_are_unbiased() -> None:
    """60 inputs in 20 dimensions leave a third of the noise to the fit."""
    found = [
        linear_part(
            lambda x: x[:, :1] + sqrt(2) * (50 * x[:, 1:2]).cos(),
            gaussian_inputs(60, 20, seed=seed),
        ).nonlinear.value
        for seed in range(60)
    ]
    assert np.mean(found) == pytest.approx(0.5, abs=5 * float(np.std(found)) / sqrt(60))


def test_jacobians_and_their_moments() -> None:
    import torch

    networks = [drawn([Dense(2.0), TANH, Dense(1.0)], 12, 12, s) for s in range(3)]
    x = gaussian_inputs(1, 12)[0]
    values = [jacobian_values(f, x) for f in networks]
    found = jacobian_moments(networks, x)
    squares = [float((v**2).mean()) for v in values]
    fourths = [float((v**4).mean()) for v in values]
    assert found.first.value == pytest.approx(np.mean(squares))
    assert found.second.value == pytest.approx(np.mean(fourths))
    relative = [b / a**2 - 1 for a, b in zip(squares, fourths, strict=True)]
    assert found.relative_variance.value == pytest.approx(np.mean(relative))
    h = networks[0].layers(x[None])[1][0]
    eye = torch.eye(12, dtype=torch.float64)
    first, last = networks[0].layer(1, [eye]).T, networks[0].layer(3, [eye]).T
    slope = (1 - h.tanh() ** 2).diag()
    product = last @ slope @ first
    assert jacobian(networks[0], x).numpy() == pytest.approx(product.numpy())
    with pytest.raises(UsageError, match="1 networks"):
        jacobian_moments(networks[:1], x)
    with pytest.raises(UsageError, match="one input"):
        jacobian(networks[0], x[None])


def test_gaussian_inputs_have_a_centre() -> None:
    x = gaussian_inputs(400, 500, 1.7, 0.4, seed=2).numpy()
    gram = x @ x.T / 500
    assert np.mean(np.diag(gram)) == pytest.approx(1.7, rel=0.05)
    assert np.mean(gram[np.triu_indices(400, 1)]) == pytest.approx(0.4, rel=0.3)
    assert x.var(0).mean() == pytest.approx(1.3, rel=0.02)


def test_what_no_inputs_have_is_refused() -> None:
    with pytest.raises(UsageError, match="at most 5"):
        elementlike_inputs(6, 5)
    with pytest.raises(UsageError, match=r"c is 1\.0"):
        gaussian_inputs(5, 5, 1.0, 1.0)
    with pytest.raises(UsageError, match="at least 1"):
        gaussian_inputs(0, 5)
    with pytest.raises(UsageError, match="q is 0"):
        gaussian_inputs(3, 5, 0.0)
