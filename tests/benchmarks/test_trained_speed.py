"""Trained networks of finite width against the products they cannot do without."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from trials import train_setting

from tests.benchmarks.figures import figure
from tpcalc.data import images
from tpcalc.finite.training.steps import quiet
from tpcalc.results import Setting
from tpcalc.results.images import Images

BATCH, WIDTH, STEPS = 512, 1024, 4


@pytest.fixture(scope="module")
def data() -> Images:
    from tpcalc.data import mixture_images

    return mixture_images(dimension=784, train=STEPS * BATCH, test=100)


def noted(benchmark: Any, what: str) -> None:
    """The fastest round, for one step."""
    if benchmark.enabled:
        case = f"a step of {BATCH} images, six layers of width {WIDTH}, {what}"
        figure("finite", case, benchmark.stats.stats.min / STEPS)


@pytest.mark.benchmark(group="a step of the networks of the paper, float32")
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adamw(eps=1e-8, decay=0.1)"])
def test_training_step(benchmark: Any, data: Images, optimizer: str) -> None:
    """Six layers of width 1024, batches of 512, all of it: forward, backward, updates, losses."""
    setting = Setting("relu", "mup", 6, WIDTH, steps=STEPS, batch=BATCH, std=2**0.5)
    setting = replace(setting, optimizer=optimizer)
    benchmark.pedantic(
        lambda: train_setting(setting, data, trials=1, first="float32"), rounds=3, warmup_rounds=1
    )
    noted(benchmark, optimizer)


@pytest.mark.benchmark(group="a step of the networks of the paper, float32")
def test_products_alone(benchmark: Any) -> None:
    """The matrix products of these steps: three for each hidden layer, one less at the input."""
    torch = pytest.importorskip("torch")
    x, w = torch.randn(BATCH, WIDTH), torch.randn(WIDTH, WIDTH)
    first, entry = torch.randn(BATCH, 784), torch.randn(WIDTH, 784)
    out = torch.empty(BATCH, WIDTH)

    def products() -> None:
        with quiet(), torch.inference_mode():  # on one thread, as networks are
            for _ in range(STEPS):
                torch.mm(first, entry.T, out=out)
                entry.addmm_(out.T, first, alpha=0.0)
                for _ in range(5):
                    torch.mm(x, w.T, out=out)
                    torch.mm(x, w, out=out)
                    w.addmm_(out.T, x, alpha=0.0)

    benchmark.pedantic(products, rounds=3, warmup_rounds=1)
    noted(benchmark, "products alone")


@pytest.mark.benchmark(group="the bundled digits, stand-in size")
def test_small_network(benchmark: Any) -> None:
    setting = Setting("tanh", "mup", 6, 128, steps=50, batch=128)
    digits = images("digits")
    benchmark.pedantic(lambda: train_setting(setting, digits, trials=1), rounds=3, warmup_rounds=1)
