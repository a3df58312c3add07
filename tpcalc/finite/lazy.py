"""``lazy``: finite networks whose random matrices are revealed only where the program looks.

Exact in law: a matrix, Gaussian or Haar, is known only through the products asked for, and each new
product is drawn conditionally on all earlier ones, on both sides. O(n k) for the k-th product
instead of O(n^2), so widths of 10^6 are reachable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import UnknownName
from tpcalc.finite.compile import compile_program
from tpcalc.program.program import Program
from tpcalc.progress import Progress

FAMILY = 2  # first entropy word of lazy runs
STORAGES = ("float64", "float32")
TOLERANCE = 1e-10  # residual parts below this are not revealed: far below any statistical error


def run_lazy(
    program: Program,
    width: int,
    seeds: Sequence[int],
    *,
    device: str | None = None,
    dtype: str = "float64",
    threads: int | None = None,
    values: Mapping[str, Fraction] | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> dict[tuple[str, str], Array]:
    """Run a program at one width, one network for each seed.

    Source: Bolthausen, An iterative construction of solutions of the TAP equations, section 2 (the
        conditioning of a Gaussian matrix on its products).
    """
    from tpcalc.engine.run import Runner
    from tpcalc.engine.setting import Setting

    storage = "float64" if device is None else dtype
    if storage not in STORAGES:
        raise UnknownName("number format of lazy networks on a device", dtype, STORAGES)
    script, keys = compile_program(program, width, values)
    setting = Setting("finite", width, storage, TOLERANCE, device)
    runner = Runner(script, setting, threads, memory_limit)
    outcomes = runner.run([(seed, FAMILY, width) for seed in seeds], progress)
    return {
        key: np.array([outcome.scalars[column] for outcome in outcomes])
        for column, key in enumerate(keys)
    }
