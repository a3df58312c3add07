"""Training limits: bandwidth share, error per second, and the cost of networks beside them.

Every ratio compares two things measured in the same run; the latest are on
``docs/benchmarks.md``. Run with ``python -m tests.benchmarks``.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import tpcalc as tp
from tests.benchmarks.figures import figure
from tpcalc.engine import kernels
from tpcalc.engine.execute import Outcome, Workspace
from tpcalc.engine.instructions import Multiply
from tpcalc.engine.run import Runner
from tpcalc.engine.schedule import Plan, plan
from tpcalc.engine.setting import Setting
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.limit.derive import derive


def run_of(steps: int, batch: int = 1) -> tp.Program:
    """muP, 3 hidden layers, tanh, d = 3, lr 0.5, a fresh sample each step."""
    rng = np.random.default_rng(20)
    rows = (steps + 1) * batch
    xs = rng.standard_normal((rows, 3))
    ys = rng.choice([-1.0, 1.0], (rows, 1))
    data = tp.Samples(tuple(map(tuple, xs.tolist())), tuple(map(tuple, ys.tolist())))
    return tp.train(tp.MLP(3, "tanh"), "mup", data, steps=steps, lr=0.5, batch=batch, watch=())


@pytest.mark.parametrize("optimizer", ["signsgd", "adam"])
def test_entrywise_updates(optimizer: str) -> None:
    """Seconds and error of the limit of 4 steps, and the time beside gradient descent."""
    rng = np.random.default_rng(20)
    data = tp.Samples(rng.standard_normal((5, 2)).tolist(), rng.standard_normal(5).tolist())

    def found(name: str) -> tuple[float, float]:
        run = tp.Training(tp.MLP(3, "tanh"), "mup", data, steps=4, optimizer=name, lr=0.3, watch=())
        limit = tp.limit(run.program, samples=2**10, max_samples=2**10)
        seconds = seconds_of(lambda: tp.limit(run.program, samples=2**10, max_samples=2**10))
        return seconds, limit["f[4,0]"].stderr

    (own, error), (plain, _) = found(optimizer), found("sgd")
    print(f"\n{optimizer}: {own:.2f} s, error {error:.1e}, {own / plain:.1f} times SGD")
    case = f"4 steps of {optimizer}, 2^10 samples"
    figure("accuracy", case, own, error=error, peer=("gradient descent", plain))


def planned(program: tp.Program) -> Plan:
    return plan(compile_graph(derive(program)).script)


def seconds_of(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def cpu_of(call: Callable[[], object]) -> float:
    """CPU seconds of this thread: the rest of the machine may be busy."""
    start = time.thread_time()
    call()
    return time.thread_time() - start


def read_rate() -> float:
    """Bytes per second of one core reading 256 MiB (a compiled sum; numpy's is slower)."""
    array = np.ones(2**25)
    return array.nbytes / min(cpu_of(lambda: kernels.total(array)) for _ in range(7))


def product_rate() -> float:
    """Operations per second of a float64 matrix product on one core."""
    matrix = np.random.default_rng(0).random((1024, 1024))
    with threadpool_limits(1, user_api="blas"):
        return 2 * 1024**3 / min(cpu_of(lambda: matrix @ matrix) for _ in range(7))


def four_reads(found: Plan, samples: int, each: bool = False) -> int:
    """Bytes of four reads of the directions for every product (each vector of it), in float64."""
    rows: dict[tuple[str, bool], int] = {}
    total = 0
    for step in found.script.instructions:
        if isinstance(step, Multiply):
            own, other = (step.matrix, step.transpose), (step.matrix, not step.transpose)
            count = len(step.vectors) if each else 1
            total += 2 * count * (rows.get(own, 0) + rows.get(other, 0)) * samples * 8
            rows[own] = rows.get(own, 0) + len(step.vectors)
    return total


CASES = [(8, 15, 1), (32, 15, 1), (32, 15, 4), (32, 17, 1), (64, 15, 1), (100, 15, 1)]


@pytest.mark.parametrize(("steps", "log2", "replicates"), CASES)
def test_bandwidth_share(steps: int, log2: int, replicates: int) -> None:
    """Share of the read rate of the same run (four-read model, one thread, float64)."""
    found = planned(run_of(steps))
    space = Workspace(found, Setting("limit", 2**log2), replicates)
    seeds = [(r,) for r in range(replicates)]
    space.run(seeds)
    best, rate = float("inf"), 0.0
    for _ in range(5):  # by turns: what else runs takes cache and memory from both
        best = min(best, cpu_of(lambda: space.run(seeds)) / replicates)
        rate = max(rate, read_rate())
    share = four_reads(found, 2**log2) / best / rate
    print(
        f"\nT={steps} N=2^{log2} R={replicates}: {best * 1e3:.1f} ms, "
        f"{share:.2f} of {rate / 1e9:.1f} GB/s"
    )
    beside = ", four side by side" if replicates == 4 else ""
    case = f"{steps} steps, 2^{log2} samples{beside}"
    figure("engine", case, best, peer=("four reads", share * best))


def product_share(found: Plan, samples: int) -> tuple[float, float]:
    """Seconds of a replicate, and its share of the rate of matrix products in the same run."""
    space = Workspace(found, Setting("limit", samples))
    with threadpool_limits(1, user_api="blas"):
        space.run([(0,)])
        best, rate = float("inf"), 0.0
        for _ in range(3):
            best = min(best, cpu_of(lambda: space.run([(1,)])))
            rate = max(rate, product_rate())
    # a number that is read takes two operations for each vector, as if it were read for each
    return best, four_reads(found, samples, each=True) / 4 / best / rate


def particle_error(
    program: tp.Program, steps: int, samples: int, truth: np.ndarray, noise: float, storage: str
) -> tuple[float, float]:
    """RMSE of f_t for single replicates, and CPU seconds of one of as many as run by default.

    ``noise`` is the mean square error of the reference, which is in no replicate.
    """
    script = compile_graph(derive(program)).script
    runner = Runner(script, Setting("limit", samples, storage=storage), threads=1)
    seeds = [(77, r) for r in range(16)]
    runner.run(seeds)
    found: list[Outcome] = []
    cpu = min(cpu_of(lambda: found.extend(runner.run(seeds))) for _ in range(3)) / len(seeds)
    values = np.array([outcome.scalars[-steps:] for outcome in found[: len(seeds)]])
    return float(np.sqrt(max(np.mean((values - truth) ** 2) - noise, 0.0))), cpu


def dense_seconds(program: tp.Program, width: int, seeds: int) -> float:
    """CPU seconds of one dense network (torch, float32, one thread)."""
    import torch

    torch.set_num_threads(1)

    def run(count: int) -> None:
        tp.simulate(program, widths=[width], seeds=count, backend="dense", dtype="float32")

    run(1)
    start = time.process_time()
    run(seeds)
    return (time.process_time() - start) / seeds


def moments_of_networks(
    program: tp.Program, names: list[str], width: int, seeds: int, truth: np.ndarray
) -> tuple[float, float]:
    """Root-mean-square spread and bias of f_t over lazy networks (the law of dense ones)."""
    table = tp.simulate(program, widths=[width], seeds=seeds, seed=5000)
    values = np.array([row.values for row in table.rows if row.name in names])
    noise = values.var(axis=1, ddof=1) / seeds
    square = float(np.mean((values.mean(axis=1) - truth) ** 2 - noise))
    return float(np.sqrt(np.mean(noise * seeds))), float(np.sqrt(max(square, 0.0)))


@pytest.mark.parametrize(
    ("steps", "sizes", "seeds"),
    [(8, range(10, 17), 2000), (32, range(13, 18), 400)],
)
def test_cost_at_equal_error(steps: int, sizes: range, seeds: int) -> None:
    """CPU seconds for a root-mean-square error of 1e-3: averaged dense networks, and particles.

    Dense networks are of single precision, and particles have both storages of directions.
    Averaging r runs divides a spread by sqrt(r) and leaves a bias as it is. The bias of networks is
    measured at width 256 and falls like 1/n; widths whose bias alone is too large never get there.
    A single particle run cannot be made cheaper than itself.
    """
    program, target = run_of(steps), 1e-3
    names = [f"f[{t},0]" for t in range(1, steps + 1)]
    found = tp.limit(program, samples=2**18 // (1 + (steps > 8)), replicates=8, outputs=names)
    truth = np.array([found[name].value for name in names])
    print(f"\nT={steps}: reference within {max(found[name].stderr for name in names):.1e}")
    noise = float(np.mean([found[name].stderr ** 2 for name in names]))
    costs: dict[str, list[float]] = {"float64": [], "float32": []}
    for log2, (storage, kept) in product(sizes, costs.items()):
        error, cpu = particle_error(program, steps, 2**log2, truth, noise, storage)
        kept.append(cpu * max(1.0, (error / target) ** 2))
        print(f"T={steps} particles N=2^{log2} {storage}: RMSE {error:.1e}, {cpu * 1e3:.1f} ms CPU")
    bias_256 = moments_of_networks(program, names, 256, seeds, truth)[1]
    dense = []
    for width in (256, 512, 1024, 2048, 4096):
        spread = moments_of_networks(program, names, width, 40, truth)[0]
        bias = bias_256 * 256 / width
        cpu = dense_seconds(program, width, 8 if width < 1024 else 1)
        left = target**2 - bias**2
        cost = cpu * spread**2 / left if left > 0 else float("inf")
        dense.append(cost)
        print(
            f"T={steps} dense n={width}: spread {spread:.1e}, bias {bias:.1e}, "
            f"{cpu * 1e3:.1f} ms CPU each, {cost:.3g} s"
        )
    for storage, kept in costs.items():
        best, least = min(kept), min(dense)
        print(f"T={steps}: {storage} {best:.3f} s, dense {least:.1f} s: {least / best:.0f} times")
        case = f"{steps} steps" + (", directions in float32" if storage == "float32" else "")
        figure("accuracy", case, best, error=target, peer=("dense networks", least))


def test_hundred_steps() -> None:
    """T = 100 at 2^17 samples as a user calls it, program and derivation included."""
    start = time.perf_counter()
    found = tp.limit(run_of(100), samples=2**17, replicates=2, seed=1)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\nT=100 N=2^17, 2 replicates: {seconds:.1f} s, {peak:.2f} GiB, {found['f[100,0]']}")
    figure("blocks", "100 steps of one sample, 2 replicates of 2^17 samples", seconds)


def test_lazy_width_of_a_million() -> None:
    """One network of width 10^6, 8 steps."""
    start = time.perf_counter()
    table = tp.simulate(run_of(8), widths=[10**6], seeds=1)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\nlazy n=10^6, 8 steps: {seconds:.1f} s, {peak:.2f} GiB, {len(table.rows)} results")
    figure("finite", "lazy network of width 10^6, 8 steps", seconds)


@pytest.mark.parametrize(("width", "seeds"), [(256, 200), (1024, 100), (4096, 32)])
def test_lazy_against_dense(width: int, seeds: int) -> None:
    """CPU seconds of one network of many, 8 steps (dense: float32)."""
    program = run_of(8)
    tp.simulate(program, widths=[width], seeds=2, threads=1)
    start = time.process_time()
    tp.simulate(program, widths=[width], seeds=seeds, threads=1)
    lazy = (time.process_time() - start) / seeds
    dense = dense_seconds(program, width, 8192 // width)
    print(
        f"\nn={width}: lazy {lazy * 1e3:.1f} ms, dense {dense * 1e3:.0f} ms, "
        f"{dense / lazy:.0f} times"
    )
    case = f"one of {seeds} lazy networks of width {width}, 8 steps"
    figure("finite", case, lazy, peer=("dense", dense))


@pytest.mark.parametrize(("log2", "replicates"), [(14, 16), (15, 16), (17, 1)])
def test_threads(log2: int, replicates: int) -> None:
    """Wall time on one thread against all cores; on a busy machine it says nothing."""
    script = compile_graph(derive(run_of(32))).script
    seeds = [(1, r) for r in range(replicates)]

    def run(threads: int) -> None:
        Runner(script, Setting("limit", 2**log2), threads).run(seeds)

    counts = (1, len(os.sched_getaffinity(0)))
    times = [min(seconds_of(lambda n=n: run(n)) for _ in range(4)) for n in counts]
    print(
        f"\n{replicates} replicates, T=32, N=2^{log2}: {times[0]:.2f} s and {times[1]:.2f} s, "
        f"{times[0] / times[1]:.2f} times"
    )
    noun = "replicate" if replicates == 1 else "replicates"
    case = f"32 steps, {replicates} {noun} of 2^{log2} samples, all cores"
    figure("engine", case, times[1], peer=("one thread", times[0]))
