"""Dense finite width: the program as written, its matrices materialised, many seeds at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.doors.budget import spend
from tpcalc.doors.machine import memory_text
from tpcalc.engine.device.devices import (
    free_memory,
    is_out_of_memory,
    load_torch,
    resolve_device,
    resolve_dtype,
    with_device,
)
from tpcalc.errors import Exploded, OutOfMemory, ProgramError, UsageError
from tpcalc.finite.dense_plan import DensePlan, plan_dense
from tpcalc.finite.dense_rules import DENSE_RULES, DenseRun, moments
from tpcalc.finite.draws import Network
from tpcalc.finite.widths import check_width, dim_sizes
from tpcalc.names import cell_name
from tpcalc.program.base import cone
from tpcalc.program.nodes import Kind
from tpcalc.program.program import Program
from tpcalc.progress import Progress
from tpcalc.tasks.run import results
from tpcalc.tasks.task import Task

Results = dict[tuple[str, str], Array]

# On a CPU larger chunks of seeds are no faster, and smaller ones are more tasks.
NODE, BYTE = 2.5e-5, 2.5e-9  # seconds of a network on one core
_CPU_CHUNK = 2**27
# Values that are checked for overflow in one go.
_CHECKED_TOGETHER = 256


@dataclass(frozen=True)
class _Job:
    """What all chunks of one call share."""

    program: Program
    plan: DensePlan
    torch: Any
    dtype: Any
    device: Any
    width: int
    values: Mapping[str, Fraction | int] | None
    stops: bool
    names: Mapping[int, tuple[str, ...]]


@dataclass
class _Watch:
    """Finds the first node of each seed whose value left the range of floating point.

    A sum over coordinates is finite if and only if all of them are, up to sums that overflow by
    themselves; sums are collected and looked at together, because a look waits for the device.
    """

    job: _Job
    seeds: Sequence[int]
    sums: list[Any] = field(default_factory=list)
    refs: list[int] = field(default_factory=list)
    first: dict[int, int] = field(default_factory=dict)

    def see(self, ref: int, value: Any) -> None:
        double = self.job.torch.float64
        self.sums.append(value if value.dim() == 1 else value.flatten(1).sum(-1, dtype=double))
        self.refs.append(ref)
        if len(self.sums) >= _CHECKED_TOGETHER:
            self.look()

    def look(self) -> None:
        if not self.sums:
            return
        broken = ~self.job.torch.isfinite(self.job.torch.stack(self.sums))
        if bool(broken.any()):
            for position, index in broken.nonzero().tolist():
                self.first.setdefault(index, self.refs[position])
        self.sums.clear()
        self.refs.clear()
        if self.first and self.job.stops:
            index = min(self.first)
            raise Exploded(
                f"a value left the range of {str(self.job.dtype).removeprefix('torch.')} at width "
                f"{self.job.width}, seed {self.seeds[index]}.",
                where=self.job.program.place(self.first[index]),
                hint="Lower the learning rate; on_explode='nan' keeps the other seeds.",
            )


def run_dense(
    program: Program,
    width: int,
    seeds: Sequence[int],
    *,
    dtype: str = "float64",
    device: str = "cpu",
    memory_limit: int | None = None,
    values: Mapping[str, Fraction | int] | None = None,
    on_explode: str = "raise",
    notes: list[str] | None = None,
    progress: Progress | None = None,
) -> Results:
    """Run a program at one width with explicit matrices, for many seeds.

    A seed's network is the same whichever seeds run beside it and on every device; on the CPU its
    results have the same bits for every number of threads and every memory limit (orthogonal
    matrices, whose factorisation is LAPACK's, and sums over finite axes, which are products of
    matrices, agree up to rounding).

    Shapes:
        Every array has shape (len(seeds),).

    Example::

        results = run_dense(program, 256, range(100), dtype="float32")
        results["f[0,0]", "value"].std()
    """
    width = check_width(width)
    chosen = _check_seeds(seeds)
    checks.one_of("treatment of explosions", on_explode, ("raise", "nan"))
    names = _output_names(program)
    torch = load_torch()
    torch_dtype, torch_device = resolve_dtype(dtype), resolve_device(device)
    sizes = _sizes(program, width)
    plan = plan_dense(program, sizes, torch_dtype.itemsize)
    job = _Job(
        program,
        plan,
        torch,
        torch_dtype,
        torch_device,
        width,
        values,
        on_explode == "raise",
        names,
    )
    size = _chunk(job, len(chosen), memory_limit)
    parts = [chosen[start : start + size] for start in range(0, len(chosen), size)]
    tasks = [Task(f"dense, width {width}, seeds from {part[0]} on", (part,)) for part in parts]
    with with_device(torch_device):
        found = results(_some, tasks, shared=job, progress=progress)
    if notes is not None:
        notes += (note for _, more in found for note in more)
    return _joined([numbers for numbers, _ in found])


def _some(job: _Job, seeds: Sequence[int], progress: Progress) -> tuple[Results, list[str]]:
    """Some seeds at once, or in halves where memory does not suffice; and notes."""
    torch = job.torch
    try:
        return _run_chunk(job, seeds, lambda fraction: progress(fraction, ""))
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(torch, error):
            raise
        if len(seeds) == 1:
            raise _too_large(job, None) from error
    # Outside the handler, whose traceback keeps the tensors alive.
    if job.device.type == "cuda":
        torch.cuda.empty_cache()
    half = len(seeds) // 2
    first, second = (_some(job, part, progress) for part in (seeds[:half], seeds[half:]))
    return _joined([first[0], second[0]]), first[1] + second[1]


def _joined(parts: Sequence[Results]) -> Results:
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _run_chunk(
    job: _Job, seeds: Sequence[int], tell: Callable[[float], None]
) -> tuple[Results, list[str]]:
    program, plan = job.program, job.plan
    networks = [Network(seed, job.width) for seed in seeds]
    run = DenseRun(
        program=program, width=job.width, dtype=job.dtype, device=job.device, values=job.values,
        plan=plan, torch=job.torch, networks=networks,
    )  # fmt: skip
    watch = _Watch(job, seeds)
    values: list[Any] = [None] * len(program.nodes)
    kept: dict[tuple[str, str], Any] = {}
    products = 0
    with job.torch.inference_mode():
        # Not ``interpret``: here nodes run in the order of the plan, and values are dropped.
        for position, ref in enumerate(plan.order):
            node = program.nodes[ref]
            value = DENSE_RULES.table[type(node)](node, ref, values, run)
            values[ref] = value
            if program.types[ref].kind is not Kind.MATRIX and ref not in plan.views:
                watch.see(ref, value)
            for name in job.names.get(ref, ()):
                own = (value,) if program.types[ref].kind is Kind.SCALAR else moments(run, value)
                for statistic, numbers in zip(_statistics(program, ref), own, strict=True):
                    kept[name, statistic] = numbers
            for dead in plan.drops[position]:
                values[dead] = None
            if ref in plan.batches:
                products += len(plan.batches[ref])
                tell(products / plan.products)
        watch.look()
        found = _by_cell(job, kept)
    tell(1.0)
    notes = []
    for index, ref in sorted(watch.first.items()):
        for numbers in found.values():
            numbers[index] = np.nan
        notes.append(
            f"width {job.width}, seed {seeds[index]}: {program.place(ref)} left the range of "
            "floating point; all its results are nan."
        )
    return found, notes


def _by_cell(job: _Job, kept: Mapping[tuple[str, str], Any]) -> Results:
    """Numbers of blocks, cell by cell."""
    found: Results = {}
    for name, ref in job.program.outputs:
        arrays = {
            statistic: kept[name, statistic].to(job.torch.float64).cpu().numpy()
            for statistic in _statistics(job.program, ref)
        }
        for cell in np.ndindex(*(size for _, size in job.program.types[ref].axes)):
            for statistic, array in arrays.items():
                found[cell_name(name, cell), statistic] = array[:, *cell].copy()
    return found


def _check_seeds(seeds: Sequence[int]) -> list[int]:
    chosen = [checks.seed(seed) for seed in seeds]
    if not chosen:
        raise UsageError("there are no seeds.", hint="Try seeds=range(10).")
    if len(set(chosen)) < len(chosen):
        twice = next(seed for seed in chosen if chosen.count(seed) > 1)
        raise UsageError(
            f"seed {twice} is given twice: the same network would be counted twice.",
            hint="Give different seeds.",
        )
    return chosen


def _output_names(program: Program) -> dict[int, tuple[str, ...]]:
    names: dict[int, tuple[str, ...]] = {}
    for name, ref in program.outputs:
        names[ref] = (*names.get(ref, ()), name)
    if not names:
        raise ProgramError(
            "the program names no output, so there is nothing to report.",
            hint='Name one, as in t.output("h", h).',
        )
    return names


def _statistics(program: Program, ref: int) -> tuple[str, ...]:
    return ("value",) if program.types[ref].kind is Kind.SCALAR else ("mean", "second_moment")


def _sizes(program: Program, width: int) -> dict[str, int]:
    """Sizes of the dimension classes that occur in what is computed."""
    types = program.types  # checks the program
    needed = cone(program.nodes, (ref for _, ref in program.outputs))
    used = {name for ref, found in enumerate(types) if needed[ref] for name in found.width}
    return dim_sizes((dim for dim in program.dims if dim.name in used), width)


def _chunk(job: _Job, seeds: int, memory_limit: int | None) -> int:
    """How many seeds run at once."""
    limit = free_memory(job.device) // 2 if memory_limit is None else int(memory_limit)
    need = max(job.plan.seed_bytes, 1)
    if need > limit:
        raise _too_large(job, limit)
    if job.device.type == "cpu":
        limit = min(limit, max(_CPU_CHUNK, need))
        spend(
            f"{seeds} networks of width {job.width}",
            seconds=seeds * (NODE * len(job.program.nodes) + BYTE * need),
            hint="Use fewer of them, or a smaller width.",
        )
    most = max(1, min(seeds, limit // need))
    return -(-seeds // -(-seeds // most))


def _too_large(job: _Job, limit: int | None) -> OutOfMemory:
    parts = [f"one network of width {job.width} needs {memory_text(job.plan.seed_bytes)}"]
    if job.plan.largest is not None:
        ref, count = job.plan.largest
        rows, cols = (job.plan.sizes[name] for name in job.program.types[ref].width)
        name = getattr(job.program.nodes[ref], "name", ref)
        parts.append(f"(the {rows} x {cols} matrix {name!r} alone {memory_text(count)})")
    may = f"{job.device} refused it" if limit is None else f"{memory_text(limit)} may be used"
    parts.append(f"and {may}.")
    smaller = "" if job.dtype.itemsize <= 4 else "dtype='float32', "
    return OutOfMemory(
        " ".join(parts),
        hint=f"Take a smaller width, {smaller}or backend='lazy', which forms no matrix.",
    )
