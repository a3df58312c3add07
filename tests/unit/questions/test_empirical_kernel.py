"""Kernels of drawn networks beside their limit: lazy ones, dense ones, and modules of torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import TpcalcError, UsageError
from tpcalc.results import EmpiricalKernel, Kernel

X = np.random.default_rng(0).normal(size=(4, 6))
SLOW = (pytest.mark.torch, pytest.mark.slow)
NETS = {
    "mlp": tp.MLP(2, "relu", weight_variance=2, bias_variance="1/10"),
    "residual": tp.ResNet(2, "tanh"),
    "two tokens": tp.RNN(2, "erf"),
}


@pytest.mark.parametrize("backend", ["lazy", pytest.param("dense", marks=SLOW)])
@pytest.mark.parametrize("name", NETS)
def test_networks_agree_with_their_limit(name: str, backend: str) -> None:
    found = tp.empirical_kernel(NETS[name], X, 512, seeds=32, backend=backend)
    limit = tp.kernel(NETS[name], X)
    assert found.agrees and found.width == 512
    for kind in ("nngp", "ntk"):
        np.testing.assert_array_equal(found.limit.matrix(kind), limit.matrix(kind))
        assert found.z(kind).shape == (4, 4)
        assert found.z(kind).max() == pytest.approx(found.rows[kind == "ntk"].z)
    draws = found.ntk
    assert draws is not None and draws.shape == (32, 4, 4)
    np.testing.assert_allclose(draws, draws.swapaxes(1, 2), rtol=1e-12)
    assert np.linalg.eigvalsh(draws).min() > -1e-10  # of each network it is a kernel


def test_narrow_networks_are_told_from_their_limit() -> None:
    """The tangent kernel of a narrow and deep network scatters, and its mean is another one."""
    net = tp.MLP(4, "tanh", weight_variance=2)
    narrow, wide = (tp.empirical_kernel(net, X, n, "ntk", seeds=3000) for n in (4, 128))
    assert not narrow.agrees and wide.agrees
    assert narrow.stderr("ntk").min() > 3 * wide.stderr("ntk").min()


def test_standard_errors_hold() -> None:
    """Of products of Gaussians, whose means and deviations go together."""
    limit = tp.kernel(NETS["mlp"], X, kinds="nngp")
    root, rng = np.linalg.cholesky(limit.matrix("nngp")), np.random.default_rng(1)
    f = rng.normal(size=(200, 32, 4)) @ root.T
    found = [EmpiricalKernel.beside(limit, nngp=one[:, :, None] * one[:, None]) for one in f]
    assert sum(not one.agrees for one in found) <= 6
    f = f.reshape(-1, 4)
    assert not EmpiricalKernel.beside(limit, nngp=1.3 * f[:, :, None] * f[:, None]).agrees


@pytest.mark.torch
@pytest.mark.slow
def test_modules_of_torch_agree_with_the_kernel_that_is_read_off_them() -> None:
    torch = pytest.importorskip("torch")
    from tpcalc.signal.functions import tangent_kernel

    def make(n: int) -> Any:
        sizes = [(6, n), (n, n), (n, 1)]
        maps = [torch.nn.Linear(a, b, bias=False, dtype=torch.float64) for a, b in sizes]
        for one in maps:
            torch.nn.init.normal_(one.weight, std=one.in_features**-0.5)
        return torch.nn.Sequential(maps[0], torch.nn.Tanh(), maps[1], torch.nn.Tanh(), maps[2])

    net = tp.torch.network(make, inputs=torch.ones(2, 6, dtype=torch.float64))
    how: dict[str, Any] = {"parameterization": "standard:1", "scale": 1}  # the rate is 1 / n
    read = tp.empirical_kernel(net, X, 256, seeds=32, **how)
    assert read.agrees
    ntk, nngp, x = [], [], torch.tensor(X)
    for seed in range(32):
        torch.manual_seed(seed)
        module = make(256)
        ntk.append(tangent_kernel(module, list(module.parameters()), x)[:, :, 0, 0] / 256)
        f = module(x).detach().numpy()
        nngp.append(f @ f.T)
    drawn = EmpiricalKernel.beside(tp.kernel(net, X, **how), ntk=ntk, nngp=nngp, width=256)
    assert drawn.agrees
    off = EmpiricalKernel.beside(drawn.limit, ntk=1.2 * np.array(ntk))
    assert not off.agrees


def test_what_does_not_fit_is_told() -> None:
    with pytest.raises(UsageError, match="the model is no network"):
        tp.empirical_kernel(lambda t: None, X, 64)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the number of inputs is 50"):
        tp.empirical_kernel(NETS["mlp"], np.ones((50, 3)), 64)
    with pytest.raises(TpcalcError, match="seeds is 1"):
        tp.empirical_kernel(NETS["mlp"], X, 64, seeds=1)
    limit: Kernel = tp.kernel(NETS["mlp"], X, kinds="ntk")
    with pytest.raises(UsageError, match="two networks or more"):
        EmpiricalKernel.beside(limit, ntk=np.ones((1, 4, 4)))
    with pytest.raises(UsageError, match="NNGP was not computed"):
        EmpiricalKernel.beside(limit, nngp=np.ones((3, 4, 4)))
    with pytest.raises(UsageError, match="no kernels of networks"):
        EmpiricalKernel.beside(limit)
    with pytest.raises(UsageError, match="was not asked for"):
        tp.empirical_kernel(NETS["mlp"], X, 64, "ntk", seeds=4).z("nngp")
