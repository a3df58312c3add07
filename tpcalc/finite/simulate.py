"""``simulate``: the same program at finite width, many seeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.dsl import filled
from tpcalc.engine.device.devices import device_name
from tpcalc.errors import Exploded, UnknownName
from tpcalc.finite.compile import compile_program
from tpcalc.finite.widths import check_widths, dim_sizes
from tpcalc.passes.as_blocks import MANY, cells_of, is_read_as_blocks
from tpcalc.passes.split import split
from tpcalc.program.program import Program, cells, restricted, selected
from tpcalc.program.types import ReadAs
from tpcalc.progress import Progress, part
from tpcalc.results import FiniteRow, FiniteTable
from tpcalc.results.tables import provenance

FAMILY = 2  # first entropy word of lazy runs
STORAGES = ("float64", "float32")
TOLERANCE = 1e-10  # residual parts below this are not revealed: far below any statistical error

Results = dict[tuple[str, str], Array]

SEEDS = {"lazy": 64, "dense": 16}  # networks of each width, if not said: of about the same cost
DEVICES = {"lazy": None, "dense": "cpu"}  # where networks run, if not said


def simulate(
    program: Program,
    widths: Sequence[int],
    seeds: int | None = None,
    *,
    backend: str = "lazy",
    device: str | None = None,
    dtype: str = "float64",
    seed: int = 0,
    threads: int | None = None,
    values: Mapping[str, object] | None = None,
    memory_limit: int | None = None,
    outputs: Sequence[str] | None = None,
    reading: ReadAs = "auto",
    progress: Progress | None = None,
) -> FiniteTable:
    """Run a program at finite widths with independent seeds.

    A program whose cells and terms are many is read as the blocks that it is written in, any other
    one cell by cell; both have the same law, and dense networks of a seed are the same.

    Args:
        program: A program, or a function decorated with ``tp.program``; with ``depth=`` of
            ``tp.simulate`` a network of L blocks.
        widths: The values of n, each once; a dimension class of ratio r has r * n coordinates.
        seeds: Networks at each width; 64 by default, 16 of the dense backend.
        backend: ``"lazy"`` (exact in law, any width) or ``"dense"`` (torch, matrices formed).
        device: Where torch computes: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"auto"``. Default: the
            CPU of the dense backend, and of the lazy one its compiled engine, without torch.
        dtype: There: ``"float64"``, ``"float32"``; of the dense backend ``"bfloat16"`` besides.
        seed: First seed; network k of a width has seed + k.
        threads: How many share the work (lazy, without a device).
        values: Numbers for symbols in exponents, by name.
        memory_limit: Bytes to stay within.
        outputs: Names or patterns (``"f*"``) of the outputs wanted, ``"-g"`` for what is left out;
            default all.
        reading: ``"blocks"`` as they are written, or ``"cells"``; ``"auto"``: blocks where cells
            are many.
        progress: Called with a fraction and a text.

    Returns:
        All outputs by name, width and seed; of a block cell by cell, ``f[0,1]``. Where numbers
        leave the floating-point range, the outputs before that are there, and a note names the
        first one that is not.

    Raises:
        UsageError: An argument that is of the wrong kind or out of range; no width, or one twice.
        UnknownName: A backend, or a symbol that the program does not have.
        MissingBackend: ``dense`` or a device without torch, or a device that is not there.
        OutOfMemory: A network does not fit; said before it runs.
        Exploded: Numbers left the floating-point range before any output, at all widths.

    Example:
        >>> from tpcalc.dsl import program
        >>> @program
        ... def start(t):
        ...     v = t.gaussian("v")
        ...     t.output("square", t.inner(v, v))
        >>> table = simulate(start, widths=[1000], seeds=3)
        >>> [(row.name, row.width, len(row.values)) for row in table.rows]
        [('square', 1000, 3)]
    """
    checks.one_of("backend", backend, SEEDS)
    source = filled(program, reading)
    wanted = None if outputs is None else checks.names(outputs, "outputs")
    found = _read(source, wanted, reading)
    asked = {cell for name in source.output for cell in cells(source, name, wanted)}
    widths = check_widths(widths)
    if seeds is None:
        seeds = SEEDS[backend]
    seeds = checks.whole(
        seeds, "seeds", least=1, each=checks.PART, hint="It counts networks, as in seeds=16."
    )
    seed = checks.seed(seed)
    device = device_name(DEVICES[backend] if device is None else device)
    checks.text(dtype, "dtype")
    checks.called(progress, "progress", 0.0, "")
    powers = None if values is None else checks.powers(values, found.symbols)
    if threads is not None:
        threads = checks.whole(threads, "threads", least=1)
    if memory_limit is not None:
        memory_limit = checks.whole(
            memory_limit, "memory_limit", least=0, each=0.0, hint="It counts bytes."
        )
    for width in widths:
        dim_sizes(found.dims, width)
    started = time.perf_counter()
    networks = _backend(backend, threads)
    rows: list[FiniteRow] = []
    overflows: dict[str, list[int]] = {}
    error: Exploded | None = None
    for index, width in enumerate(widths):
        options: dict[str, Any] = {
            "values": powers,
            "memory_limit": memory_limit,
            "progress": part(progress, index, index + 1, len(widths)),
            "dtype": dtype,
            "device": device,
        }
        run = partial(networks, width=width, seeds=range(seed, seed + seeds), **options)
        results, lost = before_overflow(run, found)
        if lost is not None:
            overflows.setdefault(lost.name, []).append(width)
            error = lost.error
        rows.extend(
            FiniteRow(name, statistic, width, tuple(float(v) for v in array))
            for (name, statistic), array in results.items()
            if name in asked
        )
    if error is not None and not rows:
        raise error
    settings = {"backend": backend, "seeds": str(seeds)}
    if device is not None:
        settings |= {"device": device, "dtype": dtype}
    record = provenance(source.digest, seed, settings, time.perf_counter() - started)
    notes = tuple(
        f"at width {', '.join(map(str, at))}: numbers leave the floating-point range at {name}; "
        "it and the outputs after it have none there"
        for name, at in overflows.items()
    )
    return FiniteTable(tuple(rows), tuple(widths), seeds, backend, record, notes)


def _backend(name: str, threads: int | None) -> Callable[..., Results]:
    """What runs networks; torch is imported with the dense ones."""
    if name == "lazy":
        return partial(run_lazy, threads=threads)
    from tpcalc.finite.dense import run_dense

    return run_dense


def _read(source: Program, wanted: Sequence[str] | None, reading: ReadAs) -> Program:
    """What is wanted of a program: blocks where cells are many, else a node for each cell."""
    found = selected(source, wanted)
    large = not found.has_blocks and cells_of(found) > MANY
    return found if large or is_read_as_blocks(found, reading) else split(found)


@dataclass(frozen=True)
class Overflow:
    """The first output that a run cannot give, and the error it ended with."""

    name: str
    error: Exploded


def before_overflow(
    run: Callable[[Program], Results], program: Program
) -> tuple[Results, Overflow | None]:
    """The results of a run up to the first output that it cannot give."""
    try:
        return run(program), None
    except Exploded as error:
        outputs = sorted(program.outputs, key=lambda output: output[1])
        found: Results = {}
        known, largest = 0, len(outputs) - 1  # of so many outputs there are numbers
        while known < largest:
            middle = (known + largest + 1) // 2
            try:
                found, known = run(restricted(program, dict(outputs[:middle]))), middle
            except Exploded:
                largest = middle - 1
        return found, Overflow(outputs[known][0], error)


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
