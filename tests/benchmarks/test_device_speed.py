"""A device beside the compiled engine of the CPU, in one run: CUDA where there is one, else torch.

The latest figures are on ``docs/benchmarks.md``. Run with ``python -m pytest tests/benchmarks -s``.
"""

from __future__ import annotations

import pytest

from tests.benchmarks.figures import fastest
from tests.benchmarks.test_training_limits import run_of
from tpcalc.engine.run import Runner
from tpcalc.engine.setting import Setting
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.finite.compile import compile_program
from tpcalc.limit.derive import derive

torch = pytest.importorskip("torch")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def beside(name: str, script: object, mode: str, width: int, replicates: int, times: int) -> None:
    """Seconds of both, of float64 and float32, and the part of host draws."""
    seeds = [(7, r) for r in range(replicates)]

    def seconds(storage: str, device: str | None) -> float:
        runner = Runner(script, Setting(mode, width, storage, device=device))  # type: ignore[arg-type]
        runner.run(seeds[:1])  # compiled, and the device awake
        return fastest(lambda: runner.run(seeds), times, warm=False)  # the results are on the host

    own = {storage: seconds(storage, None) for storage in ("float64", "float32")}
    found = {storage: seconds(storage, DEVICE) for storage in own}
    text = ", ".join(
        f"{storage} {found[storage]:.3f} s (engine {own[storage]:.3f} s, "
        f"{own[storage] / found[storage]:.2f} times)"
        for storage in own
    )
    print(f"\n{DEVICE}, {name}, {replicates} of {width}: {text}")


@pytest.mark.parametrize(
    ("steps", "batch", "samples", "replicates"),
    [(8, 1, 2**14, 16), (32, 1, 2**17, 8), (100, 1, 2**17, 2), (20, 16, 2**13, 8)],
)
def test_limits(steps: int, batch: int, samples: int, replicates: int) -> None:
    script = compile_graph(derive(run_of(steps, batch))).script
    beside(f"{steps} steps of {batch}", script, "limit", samples, replicates, 2)


@pytest.mark.parametrize(("width", "networks"), [(1024, 64), (16384, 16)])
def test_lazy_networks(width: int, networks: int) -> None:
    script, _ = compile_program(run_of(8, 1), width, None)
    beside("8 steps of 1, lazy", script, "finite", width, networks, 2)
