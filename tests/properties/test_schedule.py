"""Random scripts: scheduling changes no value, and the engine computes what a script says.

The values of a script are checked in two steps. With every vector returned, each instruction is
compared with numpy on the engine's own inputs, and products with the existence of one matrix behind
them. With only scalars returned, vectors die and their arrays are used again: the scalars must
stay what they were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from tpcalc.engine.execute import Workspace
from tpcalc.engine.instructions import (
    Dot,
    DrawScalar,
    Instruction,
    Map,
    Matrix,
    Mean,
    Multiply,
    Noise,
    Outer,
    ScalarMap,
    Script,
    Space,
    Starts,
    Sum,
    scalar_inputs,
    scalar_outputs,
    vector_inputs,
    vector_outputs,
)
from tpcalc.engine.schedule import Plan, plan
from tpcalc.engine.setting import Setting
from tpcalc.functions import Fn, Par, Var
from tpcalc.functions.tape import evaluate

from .programs import RELU, TANH

RATIOS = {"n": 1.0, "m": 2.0}
MATRICES = (Matrix("A", "m", "n"), Matrix("B", "n", "n"))
UNARY = (TANH(Var(0)), RELU(Var(0)), 1 - TANH(Var(0)) ** 2)
BINARY = (TANH(Var(0) * Var(1)), Var(0) * TANH(Var(1)), TANH(Var(0) + Par(0) * Var(1)))


@dataclass
class _Grower:
    """Writes a random script, register by register."""

    rng: np.random.Generator
    spaces: list[str] = field(default_factory=list)
    scalars: int = 0
    steps: list[Instruction] = field(default_factory=list)

    def vector(self, space: str) -> int:
        self.spaces.append(space)
        return len(self.spaces) - 1

    def scalar(self) -> int:
        self.scalars += 1
        return self.scalars - 1

    def some(self, space: str, count: int) -> tuple[int, ...]:
        """Vectors of a space, recent ones more often, the same one sometimes twice."""
        known = [register for register, own in enumerate(self.spaces) if own == space]
        back = self.rng.geometric(0.2, count)
        return tuple(known[max(len(known) - int(b), 0)] for b in back)

    def old_scalar(self) -> int:
        return int(self.rng.integers(self.scalars))

    def starts(self, space: str) -> None:
        count = int(self.rng.integers(1, 4))
        factor = None
        if self.rng.random() < 0.5:
            rows = self.rng.standard_normal((count, int(self.rng.integers(1, count + 1))))
            factor = tuple(map(tuple, rows.tolist()))
        mean = tuple(float(x) for x in self.rng.choice([0.0, 0.0, 0.5], count))
        out = tuple(self.vector(space) for _ in range(count))
        self.steps.append(Starts(space, mean, factor, out))

    def grow(self) -> None:
        space = str(self.rng.choice(list(RATIOS)))
        _KINDS[int(self.rng.integers(len(_KINDS)))](self, space)

    def multiply(self, space: str) -> None:
        matrix = MATRICES[int(self.rng.integers(len(MATRICES)))]
        transpose = bool(self.rng.random() < 0.5)
        source, target = (matrix.rows, matrix.cols) if transpose else (matrix.cols, matrix.rows)
        (x,) = self.some(source, 1)
        self.steps.append(Multiply(matrix.name, transpose, (x,), (self.vector(target),)))

    def map(self, space: str) -> None:
        if self.rng.random() < 0.5:
            fn, vectors = Fn(UNARY[int(self.rng.integers(len(UNARY)))], 1), self.some(space, 1)
            self.steps.append(Map(fn, vectors, (), self.vector(space)))
        else:
            fn, vectors = Fn(BINARY[int(self.rng.integers(3))], 2, 1), self.some(space, 2)
            scalar = self.old_scalar()
            self.steps.append(Map(fn, vectors, (scalar,), self.vector(space)))

    def sum(self, space: str) -> None:
        count = int(self.rng.integers(1, 4))
        vectors = self.some(space, count)
        numbers = tuple(float(x) for x in self.rng.choice([1.0, -1.0, 0.5, 0.0], count))
        scalars = tuple(
            self.old_scalar() if self.rng.random() < 0.3 else None for _ in range(count)
        )
        self.steps.append(Sum(numbers, scalars, vectors, self.vector(space)))

    def mean(self, space: str) -> None:
        kind = self.rng.random()
        if kind < 0.5:
            fn, vectors = Fn(Var(0) * Var(1), 2), self.some(space, 2)
        elif kind < 0.8:
            fn, vectors = Fn(Var(0) ** 2, 1), self.some(space, 1)
        else:
            fn, vectors = Fn(TANH(Var(0)), 1), self.some(space, 1)
        own = self.scalar()
        self.steps.append(Mean(fn, vectors, (), own))
        out = self.scalar()  # bounded, so that nothing explodes
        self.steps.append(ScalarMap(Fn(TANH(Par(0)), 0, 1), (own,), out))

    def outer(self, space: str) -> None:
        other = str(self.rng.choice(list(RATIOS)))
        rows, (col, x) = self.some(space, 1), self.some(other, 2)
        fn = Fn(TANH(Var(0) * Var(1)), 2)
        self.steps.append(Outer(fn, rows, (col,), (), (x,), (self.vector(space),)))

    def noise(self, space: str) -> None:
        count = int(self.rng.integers(1, 3))
        vectors = tuple(self.some(space, count))
        self.steps.append(Noise(f"{count} {space}", (1.0,), vectors, self.scalar()))

    def draw(self, space: str) -> None:
        self.steps.append(DrawScalar(0.5, 1.0, self.scalar()))


_KINDS: tuple[Callable[[_Grower, str], None], ...] = (
    _Grower.multiply,
    _Grower.multiply,
    _Grower.multiply,
    _Grower.map,
    _Grower.map,
    _Grower.sum,
    _Grower.sum,
    _Grower.sum,
    _Grower.mean,
    _Grower.mean,
    _Grower.outer,
    _Grower.noise,
    _Grower.draw,
    _Grower.starts,
)


def script(seed: int, length: int = 40) -> Script:
    grower = _Grower(np.random.default_rng(seed))
    for space in RATIOS:
        grower.starts(space)
    grower.draw("n")
    for _ in range(length):
        grower.grow()
    return Script(
        tuple(Space(name, ratio) for name, ratio in RATIOS.items()),
        MATRICES,
        tuple(grower.steps),
        tuple(grower.spaces),
        grower.scalars,
        ("",) * len(grower.spaces),
        tuple(range(grower.scalars)),
    )


def returning_all(made: Script) -> Script:
    """The script with every vector but start vectors returned."""
    starts = {r for step in made.instructions if isinstance(step, Starts) for r in step.out}
    keep = tuple(r for r in range(len(made.vector_space)) if r not in starts)
    return replace(made, vectors=keep)


def keeping_all(usual: Plan) -> Plan:
    """The plan with the array of every vector kept to the end."""
    last, count = len(usual.script.instructions), len(usual.script.vector_space)
    return replace(
        usual,
        dense_until=(last,) * count,
        alive_until=(last,) * count,
        thins=((),) * last,
        ends=((),) * last,
        peak_dense=dict.fromkeys(usual.peak_dense, count),
    )


# ------------------------------------------------------------------------- values of instructions


def value(step: Instruction, vectors: dict[int, Any], scalars: dict[int, float]) -> list[Any]:
    """What an instruction other than a product or a draw writes."""
    if isinstance(step, Sum):
        total = 0.0
        for number, scalar, vector in zip(step.numbers, step.scalars, step.vectors, strict=True):
            total = total + number * (1.0 if scalar is None else scalars[scalar]) * vectors[vector]
        return [total]
    if isinstance(step, Dot):
        return [float(np.mean(vectors[step.vector] * vectors[other])) for other in step.others]
    numbers = [scalars[scalar] for scalar in scalar_inputs(step)]
    if isinstance(step, Outer):
        rows = [vectors[r][:, None] for r in step.rows]
        cols = [vectors[c][None, :] for c in step.cols]
        kernel = evaluate(step.fn, [*rows, *cols], numbers) / cols[0].size
        return [kernel @ vectors[vector] for vector in step.vectors]
    found = evaluate(step.fn, [vectors[r] for r in vector_inputs(step)], numbers)
    return [float(np.mean(found)) if isinstance(step, Mean) else found]


def interpreted(
    steps: tuple[Instruction, ...], given: dict[int, Any], width: int
) -> tuple[dict[int, Any], dict[int, float]]:
    """All registers, with explicit matrices; start vectors and draws are given."""
    rng = np.random.default_rng(3)
    size = {name: int(ratio * width) for name, ratio in RATIOS.items()}
    matrices = {
        m.name: rng.standard_normal((size[m.rows], size[m.cols])) / np.sqrt(width) for m in MATRICES
    }
    functional = {name: rng.standard_normal(size[name]) for name in RATIOS}
    vectors: dict[int, Any] = {}
    scalars: dict[int, float] = {}
    for step in steps:
        if isinstance(step, Starts):
            vectors.update({register: given[register] for register in step.out})
        elif isinstance(step, Multiply):
            matrix = matrices[step.matrix].T if step.transpose else matrices[step.matrix]
            for source, out in zip(step.vectors, step.out, strict=True):
                vectors[out] = matrix @ vectors[source]
        elif isinstance(step, DrawScalar):
            scalars[step.out] = np.sin(step.out)
        elif isinstance(step, Noise):
            own = functional[step.family.split()[1]]
            scalars[step.out] = float(np.prod([np.mean(own * vectors[v]) for v in step.vectors]))
        else:
            found = value(step, vectors, scalars)
            vectors.update(zip(vector_outputs(step), found, strict=False))
            scalars.update(zip(scalar_outputs(step), found, strict=False))
    return vectors, scalars


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_scheduling_changes_no_value(first: int) -> None:
    """Whatever the order and the batches, every register holds what the script says."""
    for seed in range(first, first + 50):
        made = script(seed)
        rng = np.random.default_rng(seed)
        given = {
            register: rng.standard_normal(int(RATIOS[space] * 8))
            for register, space in enumerate(made.vector_space)
        }
        vectors, scalars = interpreted(made.instructions, given, 8)
        planned = plan(made).script
        # Images of start vectors that replace them are given what they were.
        again_v, again_s = interpreted(planned.instructions, vectors, 8)
        assert again_s.keys() == scalars.keys()
        for register, found in again_s.items():
            assert found == pytest.approx(scalars[register], rel=1e-9, abs=1e-9), (seed, register)
        for register, array in again_v.items():
            np.testing.assert_allclose(array, vectors[register], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("width", [6, 40])
def test_the_engine_computes_what_the_script_says(width: int) -> None:
    """Finite mode, where a product is that of one matrix; narrow spaces are exhausted."""
    checked = 0
    for seed in range(30):
        made = returning_all(script(seed))
        planned = plan(made).script
        outcome = Workspace(plan(made), Setting("finite", width, tolerance=1e-10)).run([(seed,)])[0]
        vectors = dict(zip(made.vectors, outcome.vectors, strict=True))
        scalars = dict(zip(made.results, outcome.scalars, strict=True))
        pairs: dict[tuple[str, bool], list[tuple[Any, Any]]] = {}
        for step in planned.instructions:
            if any(register not in vectors for register in vector_inputs(step)):
                continue
            if isinstance(step, Multiply):
                found = pairs.setdefault((step.matrix, step.transpose), [])
                for source, out in zip(step.vectors, step.out, strict=True):
                    found.append((vectors[source], vectors[out]))
            elif not isinstance(step, Starts | DrawScalar | Noise):
                expected = value(step, vectors, scalars)
                outs = [vectors[r] for r in vector_outputs(step)]
                outs += [scalars[r] for r in scalar_outputs(step)]
                for own, other in zip(outs, expected, strict=True):
                    np.testing.assert_allclose(own, other, rtol=1e-7, atol=1e-8)
                checked += 1
        for matrix in MATRICES:
            sides = (pairs.get((matrix.name, transpose), []) for transpose in (False, True))
            checked += _one_matrix(*sides)
    assert checked > 500


def _one_matrix(forward: list[tuple[Any, Any]], back: list[tuple[Any, Any]]) -> int:
    """y . (W x) = (W^T y) . x for all pairs, and W is linear on each side."""
    for side in (forward, back):
        if side:
            x, image = (np.array(part) for part in zip(*side, strict=True))
            _, values, null = np.linalg.svd(x.T, full_matrices=True)
            rank = int(np.sum(values > 1e-9 * max(values.max(initial=0.0), 1e-300)))
            np.testing.assert_allclose(null[rank:] @ image, 0.0, atol=1e-6)
    for x, image in forward:
        for y, other in back:
            assert y @ image == pytest.approx(other @ x, rel=1e-7, abs=1e-7)
    return len(forward) * len(back)


@pytest.mark.parametrize("mode", ["finite", "limit"])
def test_arrays_that_are_used_again_change_nothing(mode: Any) -> None:
    """Vectors that die early, against the same script with every vector kept to the end."""
    for seed in range(60):
        made = script(seed)
        setting = Setting(mode, 64, tolerance=1e-10)
        usual = plan(made)
        kept = Workspace(keeping_all(usual), setting).run([(seed,)])[0].scalars
        space = Workspace(usual, setting)
        np.testing.assert_allclose(space.run([(seed,)])[0].scalars, kept, rtol=1e-6, atol=1e-7)
        assert not space._vectors
        for name, pool in space._pools.items():
            work = 4  # for anything but registers
            assert len(pool._free) <= space.plan.peak_dense.get(name, work) - work, (seed, name)


@pytest.mark.parametrize("mode", ["finite", "limit"])
@pytest.mark.parametrize("width", [8, 64, 1024])
def test_a_replicate_has_the_same_bits_alone_and_in_a_bundle(width: int, mode: Any) -> None:
    """Whatever the others are: vectors and scalars, spaces that are exhausted included."""
    for seed in range(25 if width < 1024 else 4):
        made = plan(returning_all(script(seed)))
        setting = Setting(mode, width, tolerance=1e-10)
        seeds = [(seed, replicate) for replicate in range(5)]
        single = Workspace(made, setting)
        alone = [single.run([one])[0] for one in seeds]
        for found, own in zip(Workspace(made, setting, 5).run(seeds), alone, strict=True):
            assert found.scalars == own.scalars
            assert found.min_ratio == own.min_ratio
            for vector, other in zip(found.vectors, own.vectors, strict=True):
                np.testing.assert_array_equal(vector, other)
