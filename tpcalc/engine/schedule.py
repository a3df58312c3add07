"""Scheduling: batch what can be batched, know when each vector dies, say how much memory it takes.

A script is reordered by *multiplication depth*: everything that needs k successive matrix products
comes before what needs k + 1. Products of one matrix side at one depth become one batch, which
reads the direction arrays once for all of them; inner products with a common vector become one
``Dot``, after the products of their depth, when both vectors have coordinates in a common basis and
no array needs to be read. The order depends on the script alone, so an answer never depends on
threads or timing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tpcalc.engine.instructions import (
    Dot,
    Gram,
    Instruction,
    Map,
    Mean,
    Multiply,
    Outer,
    Panel,
    Script,
    Starts,
    Sum,
    scalar_inputs,
    scalar_outputs,
    vector_inputs,
    vector_outputs,
)
from tpcalc.engine.joint import Joint, joint
from tpcalc.engine.starts import draw_images
from tpcalc.functions import Atom, Call, Expr, Fn, Var
from tpcalc.functions.expr import substitute, walk

Side = tuple[str, bool]


@dataclass(frozen=True)
class Plan:
    """A scheduled script."""

    script: Script  # the script, reordered and batched
    # for each vector register the last instruction that needs its coordinates as an array (-1:
    # none)
    dense_until: tuple[int, ...]
    alive_until: tuple[int, ...]  # the last instruction that needs it in any form
    # for each instruction the registers whose arrays nobody needs after it
    thins: tuple[tuple[int, ...], ...]
    # for each instruction the registers that nobody needs after it
    ends: tuple[tuple[int, ...], ...]
    stacked: frozenset[int]  # registers kept as rows of a stack, because several sums read them
    directions: dict[tuple[str, bool], int]  # capacity of each (matrix, transpose) side
    joint: Joint  # which vectors have joint samples
    normals: tuple[int, ...]  # fresh Gaussian directions needed by each group of them
    stack_rows: dict[str, int]  # capacity of the stack of each space
    start_rows: dict[str, int]  # rows of start draws of each space
    peak_dense: dict[str, int]  # largest number of dense arrays alive at once, for each space


def plan(script: Script) -> Plan:
    """Schedule a script."""
    script = _with_bases(share_values(draw_images(script)))
    steps = tuple(_gather_dots(_by_depth(script)))
    used = {step.matrix for step in steps if isinstance(step, Multiply)}
    matrices = tuple(matrix for matrix in script.matrices if matrix.name in used)
    script = replace(script, instructions=steps, matrices=matrices)
    count = len(script.vector_space)
    dense_until, alive_until = [-1] * count, [-1] * count
    multiplied: set[int] = set()
    sums = _sum_uses(script)
    maps: set[int] = set()
    sides: dict[int, set[Side]] = defaultdict(set)
    bases = _Bases(sides, _parents(script))
    for index, step in enumerate(script.instructions):
        for register in vector_inputs(step):
            alive_until[register] = index
        for register in _read_as_arrays(step, bases):
            dense_until[register] = index
        if isinstance(step, Multiply):
            multiplied.update(step.vectors)
            for register in step.vectors:
                sides[register].add((step.matrix, step.transpose))
        elif isinstance(step, Map):
            maps.add(step.out)
    together = joint(script)
    directions, normals, start_rows = _capacities(script, together)
    last = len(script.instructions)
    for register in script.vectors:
        dense_until[register] = alive_until[register] = last
    stacked = frozenset(r for r in maps if sums.get(r, 0) >= 2 and r not in multiplied)
    stack_rows: dict[str, int] = defaultdict(int)
    for register in stacked:
        stack_rows[script.vector_space[register]] += 1
    return Plan(
        script,
        tuple(dense_until),
        tuple(alive_until),
        *_endings(script, dense_until, alive_until),
        stacked,
        directions,
        together,
        normals,
        dict(stack_rows),
        start_rows,
        _peak(script, dense_until, alive_until, stacked),
    )


def _endings(
    script: Script, dense_until: list[int], alive_until: list[int]
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """For each instruction the vectors whose arrays, and those that altogether, end with it."""
    thins: list[list[int]] = [[] for _ in script.instructions]
    ends: list[list[int]] = [[] for _ in script.instructions]
    for index, step in enumerate(script.instructions):
        for register in vector_outputs(step):
            end, last = alive_until[register], len(script.instructions)
            if end < last:
                ends[max(end, index)].append(register)
            thin = max(dense_until[register], index)
            if thin < min(end, last):
                thins[thin].append(register)
    return tuple(map(tuple, thins)), tuple(map(tuple, ends))


def _capacities(
    script: Script, together: Joint
) -> tuple[dict[Side, int], tuple[int, ...], dict[str, int]]:
    """Directions of each matrix side, fresh normals of each group, start rows of each space."""
    directions: dict[Side, int] = defaultdict(int)
    normals = [0] * len(together.spaces)
    start_rows: dict[str, int] = defaultdict(int)
    for step in script.instructions:
        if isinstance(step, Multiply):
            side = (step.matrix, step.transpose)
            directions[side] += len(step.vectors)
            normals[together.images[side]] += len(step.vectors)
        elif isinstance(step, Starts):
            normals[together.vectors[step.out[0]]] += step.rank
            start_rows[step.space] += step.rank
    return dict(directions), tuple(normals), dict(start_rows)


def _sum_uses(script: Script) -> dict[int, int]:
    """How many sums of several vectors read each register, directly or rescaled."""
    uses: dict[int, int] = defaultdict(int)
    for step in reversed(script.instructions):
        if isinstance(step, Sum) and len(step.vectors) == 1:
            uses[step.vectors[0]] += uses[step.out]
        elif isinstance(step, Sum | Panel):
            for register in step.vectors:
                uses[register] += len(vector_outputs(step))
    return uses


def _sides(script: Script) -> dict[int, set[Side]]:
    """The matrix sides that each vector is an input of."""
    sides: dict[int, set[Side]] = defaultdict(set)
    for step in script.instructions:
        if isinstance(step, Multiply):
            for register in step.vectors:
                sides[register].add((step.matrix, step.transpose))
    return sides


def _by_depth(script: Script) -> Iterable[Instruction]:
    """Reorder by multiplication depth and batch products of one side at one depth.

    Within a depth, what needs fewer coordinatewise steps comes first and sums come before the
    steps that read them, so that the vectors of a batch are formed together.
    """
    bases = _Bases(_sides(script), _parents(script))
    start = (0, 0)
    vector_time, scalar_time = [start] * len(script.vector_space), [start] * script.scalars
    sums: dict[tuple[int, int], list[Instruction]] = defaultdict(list)
    others: dict[tuple[int, int], list[Instruction]] = defaultdict(list)
    products: dict[int, dict[Side, list[Multiply]]] = defaultdict(lambda: defaultdict(list))
    after_products: dict[int, list[Instruction]] = defaultdict(list)
    for step in script.instructions:
        time = max(
            (
                start,
                *(vector_time[r] for r in vector_inputs(step)),
                *(scalar_time[r] for r in scalar_inputs(step)),
            )
        )
        depth, stage = time
        after = (depth + 1, 0)
        if isinstance(step, Multiply):
            products[depth][(step.matrix, step.transpose)].append(step)
        elif isinstance(step, Gram) or (
            (pair := _inner_pair(step)) is not None and bases.shared(pair[:2])
        ):
            after_products[depth].append(step)
        elif isinstance(step, Sum | Panel):
            sums[time].append(step)
            after = time
        else:
            others[time].append(step)
            after = (depth, stage + 1)
        for register in vector_outputs(step):
            vector_time[register] = after
        for register in scalar_outputs(step):
            scalar_time[register] = after
    times = {*sums, *others}
    for depth in sorted({*products, *after_products, *(depth for depth, _ in times)}):
        for time in sorted(time for time in times if time[0] == depth):
            yield from sums[time]
            yield from _with_kernels_once(others[time])
        for (matrix, transpose), steps in products[depth].items():
            yield Multiply(
                matrix,
                transpose,
                tuple(r for step in steps for r in step.vectors),
                tuple(r for step in steps for r in step.out),
            )
        yield from after_products[depth]


def _with_kernels_once(steps: Iterable[Instruction]) -> Iterable[Instruction]:
    """Outer functions of the same rows and columns become one, of all their vectors."""
    found: dict[Instruction | int, Instruction] = {}
    for place, step in enumerate(steps):
        if not isinstance(step, Outer):
            found[place] = step
            continue
        key = replace(step, vectors=(), out=())
        known = found.get(key, key)
        assert isinstance(known, Outer)
        vectors, out = (*known.vectors, *step.vectors), (*known.out, *step.out)
        found[key] = replace(step, vectors=vectors, out=out)
    return found.values()


def _gather_dots(steps: Iterable[Instruction]) -> Iterable[Instruction]:
    """Merge runs of inner products that share a vector."""
    pending: Dot | None = None
    for step in steps:
        pair = _inner_pair(step)
        if pair is not None and pending is not None and pending.vector in pair[:2]:
            other = pair[1] if pair[0] == pending.vector else pair[0]
            pending = replace(pending, others=(*pending.others, other), out=(*pending.out, pair[2]))
            continue
        if pending is not None:
            yield pending
            pending = None
        if pair is not None:
            pending = Dot(pair[1], (pair[0],), (pair[2],))
        else:
            yield step
    if pending is not None:
        yield pending


def _with_bases(script: Script) -> Script:
    """Inner products of lists without a common basis become those of single vectors."""
    bases = _Bases(_sides(script), _parents(script))
    out: list[Instruction] = []
    for step in script.instructions:
        if not isinstance(step, Gram) or bases.shared(vector_inputs(step)):
            out.append(step)
            continue
        count = len(step.rights)
        for place, left in enumerate(step.lefts):
            first = step.out + place * count
            out.append(Dot(left, step.rights, tuple(range(first, first + count))))
    return replace(script, instructions=tuple(out))


def _read_as_arrays(step: Instruction, bases: _Bases) -> tuple[int, ...]:
    """The vectors of which an instruction needs the coordinates."""
    if isinstance(step, Sum | Panel | Gram):
        return ()
    if isinstance(step, Dot):
        apart = tuple(other for other in step.others if not bases.shared((step.vector, other)))
        return (step.vector, *apart) if apart else ()
    return vector_inputs(step)


def _parents(script: Script) -> dict[int, int]:
    """For each multiple of a vector that vector."""
    return {
        step.out: step.vectors[0]
        for step in script.instructions
        if isinstance(step, Sum) and len(step.vectors) == 1
    }


@dataclass(frozen=True)
class _Bases:
    """Where vectors, or what they are multiples of, have coordinates."""

    sides: Mapping[int, set[Side]]
    parents: Mapping[int, int]

    def shared(self, registers: Iterable[int]) -> bool:
        """Whether all of them have coordinates in one basis."""
        found: set[Side] | None = None
        for register in registers:
            own: set[Side] = set()
            chain: int | None = register
            while chain is not None:
                own |= self.sides.get(chain, set())
                chain = self.parents.get(chain)
            found = own if found is None else found & own
            if not found:
                return False
        return True


def _inner_pair(step: Instruction) -> tuple[int, int, int] | None:
    if isinstance(step, Mean) and step.fn.is_inner:
        return step.vectors[0], step.vectors[-1], step.out
    return None


def _peak(
    script: Script, dense_until: list[int], alive_until: list[int], stacked: frozenset[int]
) -> dict[str, int]:
    """Largest number of dense arrays alive at once on each space, by a dry run."""
    live: dict[str, int] = defaultdict(int)
    peak: dict[str, int] = defaultdict(int)
    ends: dict[int, list[int]] = defaultdict(list)
    multiplied = _first_uses(script, lambda step: isinstance(step, Multiply))
    held = _held_until(script, alive_until, multiplied, stacked)
    for index, step in enumerate(script.instructions):
        shifted = isinstance(step, Starts) and any(step.mean)
        for register in vector_outputs(step):
            if dense_until[register] < 0 and not (shifted or isinstance(step, Map | Outer)):
                continue  # never formed: a combination of stored rows that only sums read
            space = script.vector_space[register]
            rows = register in multiplied or register in stacked
            end = dense_until[register] if rows else alive_until[register]
            live[space] += 1
            peak[space] = max(peak[space], live[space])
            ends[max(end, held[register], index)].append(register)
        for register in ends.pop(index, []):
            live[script.vector_space[register]] -= 1
    return {space: count + 4 for space, count in peak.items()}  # work buffers


def _held_until(
    script: Script,
    alive_until: list[int],
    multiplied: dict[int, int],
    stacked: frozenset[int],
) -> list[int]:
    """Until when sums that were not formed yet hold the array of each vector (-1: none does)."""
    formed = _first_uses(script, lambda step: not isinstance(step, Sum | Panel))
    held, passed = [-1] * len(alive_until), [-1] * len(alive_until)
    for index, step in reversed([*enumerate(script.instructions)]):
        if not isinstance(step, Sum | Panel):
            continue
        until = max(
            max(formed.get(out, alive_until[out]), passed[out]) for out in vector_outputs(step)
        )
        for register in step.vectors:
            has_rows = len(step.vectors) == 1 or multiplied.get(register, index) < index
            if register in stacked or (register in multiplied and has_rows):
                continue  # read from its rows
            held[register] = max(held[register], until)
            if index < formed.get(register, index + 1):  # a sum of what this one is a sum of
                passed[register] = max(passed[register], until)
    return held


def _first_uses(script: Script, reads: Callable[[Instruction], bool]) -> dict[int, int]:
    """The first instruction of a kind that reads each vector."""
    first: dict[int, int] = {}
    for index, step in enumerate(script.instructions):
        if reads(step):
            for register in vector_inputs(step):
                first.setdefault(register, index)
    return first


def share_values(script: Script) -> Script:
    """Replace an atom of a vector by the register that holds its value already.

    Derivatives of many activations are written with the activation itself; its values were computed
    in the forward pass. The vector itself is then often needed no longer.
    """
    values: dict[tuple[Atom, int], int] = {}
    out: list[Instruction] = []
    for step in script.instructions:
        if isinstance(step, Map | Mean):
            step = _shared(step, values)
            expr = step.fn.expr
            if isinstance(step, Map) and isinstance(expr, Call) and expr.arg == Var(0):
                values.setdefault((expr.atom, step.vectors[0]), step.out)
        out.append(step)
    return replace(script, instructions=tuple(out))


def _shared(step: Map | Mean, values: dict[tuple[Atom, int], int]) -> Map | Mean:
    registers = list(step.vectors)
    names: dict[Expr, Expr] = {}
    for part in walk(step.fn.expr):
        if isinstance(part, Call) and isinstance(part.arg, Var) and part not in names:
            value = values.get((part.atom, step.vectors[part.arg.index]))
            if value is not None:
                names[part] = Var(len(registers))
                registers.append(value)
    if not names:
        return step
    expr = substitute(step.fn.expr, names)
    fn, vectors, scalars = Fn(expr, len(registers), step.fn.scalars).compact()
    return replace(
        step,
        fn=fn,
        vectors=tuple(registers[i] for i in vectors),
        scalars=tuple(step.scalars[i] for i in scalars),
    )
