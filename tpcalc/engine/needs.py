"""Bytes that a scheduled script needs, known before it runs."""

from __future__ import annotations

from tpcalc.doors.machine import memory_text
from tpcalc.engine.directions import IMAGES
from tpcalc.engine.draws import STOCK
from tpcalc.engine.instructions import Multiply, Noise, Outer
from tpcalc.engine.schedule import Plan
from tpcalc.engine.setting import Setting
from tpcalc.errors import OutOfMemory
from tpcalc.functions.tape import lower

OVERHEAD = 1.1
INSTRUCTION, NUMBER, PRODUCT, PAIR = 7e-6, 8e-9, 2e-9, 2e-10  # seconds
SMALL_TABLES = 4  # of directions times directions: coordinates, and the triangle of a basis


def memory_needed(schedule: Plan, setting: Setting) -> int:
    """Bytes that one replicate at a time needs, known before it runs."""
    script = schedule.script
    total = array_bytes(schedule, setting) + script.scalars * 8
    for matrix in script.matrices:
        both = sum(schedule.directions.get((matrix.name, side), 0) for side in (False, True))
        for transpose in (False, True):
            count = schedule.directions.get((matrix.name, transpose), 0)
            tables = both if matrix.law == "orthogonal" else count
            total += SMALL_TABLES * tables**2 * 8
            if matrix.adjoint:  # draws times directions of the other side
                total += count * (both - count) * 8
    ratio = {space.name: space.ratio for space in script.spaces}
    for step in script.instructions:
        if isinstance(step, Noise):  # keeps its vectors
            spaces = (script.vector_space[vector] for vector in step.vectors)
            total += sum(setting.size(ratio[space]) for space in spaces) * 8
    if setting.mode == "finite":  # draws ahead
        total += STOCK * len(script.spaces) * 8
    return int(OVERHEAD * total)


def numbers_made(schedule: Plan, setting: Setting) -> int:
    """About how many numbers one replicate writes, which is what most of its time goes to."""
    script = schedule.script
    ratio = {space.name: space.ratio for space in script.spaces}
    return sum(setting.size(ratio[space]) for space in script.vector_space) + script.scalars


def seconds_needed(schedule: Plan, setting: Setting) -> float:
    """About how long one replicate takes on one core."""
    script = schedule.script
    ratio = {space.name: space.ratio for space in script.spaces}
    products = 0  # of a direction with those before it
    for matrix in script.matrices:
        for side, space in ((False, matrix.rows), (True, matrix.cols)):
            count = schedule.directions.get((matrix.name, side), 0)
            products += count**2 * setting.size(ratio[space])
    pairs = 0  # of coordinates, times the operations on each
    for step in script.instructions:
        if isinstance(step, Outer):
            size = setting.size(ratio[script.vector_space[step.vectors[0]]])
            pairs += size * step.inner(size) * (len(lower(step.fn).steps) + len(step.vectors))
    own = INSTRUCTION * len(script.instructions) + NUMBER * numbers_made(schedule, setting)
    return own + PRODUCT * products + PAIR * pairs


def too_large(setting: Setting, needed: int, limit: int, where: str = "") -> OutOfMemory:
    """The error of a replicate that does not fit, with what there is and where."""
    one, hint = f"one network of width {setting.width}", "Use a smaller width"
    if setting.mode == "limit":
        one, hint = f"one replicate of {setting.width} samples", "Use fewer samples"
    single = " or storage='float32'" if setting.storage == "float64" else ""
    rest = f", fewer steps{single}." if setting.mode == "limit" else " or fewer steps."
    return OutOfMemory(
        f"{one} needs {memory_text(needed)} and {memory_text(limit)} are available{where}.",
        hint=hint + rest,
    )


def array_bytes(schedule: Plan, setting: Setting) -> int:
    """Bytes of them in arrays over spaces, which come and go with a workspace."""
    script = schedule.script
    ratio = {space.name: space.ratio for space in script.spaces}
    entries = {"float32": 4, "float64": 8}
    entry, total = entries[setting.storage], 0
    batch = _largest_batches(schedule)
    for matrix in script.matrices:
        rows, cols = setting.size(ratio[matrix.rows]), setting.size(ratio[matrix.cols])
        drawn = setting.mode == "limit" and matrix.law != "orthogonal"
        image = entry
        if drawn and setting.device is None:  # tensors all have one storage
            image = entries[IMAGES]
        for transpose, to, source in ((False, rows, cols), (True, cols, rows)):
            count = schedule.directions.get((matrix.name, transpose), 0)
            total += count * (to * image + source * entry)
            if not drawn or matrix.adjoint:  # images under way
                total += batch.get((matrix.name, transpose), 0) * to * 8
    for counts in (schedule.stack_rows, schedule.start_rows, schedule.peak_dense):
        for name, count in counts.items():
            total += count * setting.size(ratio[name]) * 8
    return total


def _largest_batches(schedule: Plan) -> dict[tuple[str, bool], int]:
    """The largest batch of each (matrix, transpose) side."""
    out: dict[tuple[str, bool], int] = {}
    for step in schedule.script.instructions:
        if isinstance(step, Multiply):
            side = (step.matrix, step.transpose)
            out[side] = max(out.get(side, 0), len(step.vectors))
    return out
