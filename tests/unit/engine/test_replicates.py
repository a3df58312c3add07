"""Replicates side by side have the bits that they have alone, however they differ."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tpcalc as tp
from tpcalc.engine.directions import FiniteMatrix, LimitMatrix, SampleSpace, materialise
from tpcalc.engine.directions_haar import HaarMatrix
from tpcalc.engine.draws import PlainDraws, SobolDraws
from tpcalc.engine.execute import Workspace
from tpcalc.engine.schedule import plan
from tpcalc.engine.setting import Setting
from tpcalc.errors import Exploded
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.limit.derive import derive

SIZE, COUNT = 256, 4


def make(kind, law, replicates, storage):
    """A matrix of one or more replicates, with the draws of their seeds."""
    spaces = [SampleSpace(SIZE, 1.0, 128, len(replicates)) for _ in range(2)]
    if law == "limit":
        draws = [SobolDraws(12, 8, *((r, side) for r in replicates)) for side in (0, 1)]
    else:
        draws = [PlainDraws(SIZE, *((r, side) for r in replicates)) for side in (0, 1)]
    if kind == "orthogonal":
        return HaarMatrix(law, spaces, 40, draws, storage=storage)
    cls = LimitMatrix if law == "limit" else FiniteMatrix
    return cls(spaces, (40, 40), draws, storage=storage)


def inputs(recipe, rng, older):
    """Vectors of one replicate: new, repeated, zero, nearly dependent, very large."""
    found = []
    for kind in recipe:
        fresh = rng.standard_normal(SIZE)
        known = older[-1] if older else fresh
        found.append({
            "new": fresh, "repeat": known, "zero": np.zeros(SIZE), "large": 1e200 * fresh,
            "near": known + 1e-3 * np.abs(known).max() * fresh,
        }[kind])  # fmt: skip
        older.append(found[-1])
    return found


def products(matrix, vectors, transpose):
    """The products with vectors, given as (vector, replicate, sample)."""
    flat = [np.ascontiguousarray(vector).reshape(-1) for vector in vectors]
    product = matrix.multiply(flat, transpose)
    side, other = matrix.side(transpose), matrix.side(not transpose)
    outs = [side.output.zeros() for _ in flat]
    terms = [(other.q, product.echo)] if product.echo.shape[2] else []
    if side.e.capacity:
        terms.insert(0, (side.e, product.coords))
    materialise(outs, terms)
    return np.array(outs).reshape(len(vectors), -1, SIZE)


KINDS = st.sampled_from(["new", "new", "repeat", "zero", "near", "large"])
STEPS = st.lists(
    st.integers(1, 3).flatmap(
        lambda batch: st.tuples(
            st.booleans(),
            st.lists(
                st.lists(KINDS, min_size=batch, max_size=batch), min_size=COUNT, max_size=COUNT
            ),
        )
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["gaussian", "orthogonal"]),
    st.sampled_from(["finite", "limit"]),
    st.sampled_from(["float64", "float32"]),
    STEPS,
)
def test_products_of_replicates_that_differ(kind, law, storage, steps):
    rngs = [np.random.default_rng(r) for r in range(COUNT)]
    olds = [{True: [], False: []} for _ in range(COUNT)]
    together = make(kind, law, range(COUNT), storage)
    alone = [make(kind, law, [r], storage) for r in range(COUNT)]
    for transpose, recipes in steps:
        own = [
            inputs(recipe, rng, old[transpose])
            for recipe, rng, old in zip(recipes, rngs, olds, strict=True)
        ]
        with np.errstate(all="ignore"):
            found = products(together, np.array(own).transpose(1, 0, 2), transpose)
            for r, matrix in enumerate(alone):
                want = products(matrix, np.array(own[r])[:, None], transpose)
                np.testing.assert_array_equal(found[:, r], want[:, 0])
    np.testing.assert_array_equal(together.min_ratios, [m.min_ratios[0] for m in alone])


@tp.program
def trained(t):
    """Products in both directions, an activation with a kink, scalars."""
    w, v, x = t.matrix("W"), t.gaussian("v"), t.gaussian("x")
    for step in range(3):
        h = tp.relu(tp.n**-0.5 * (w @ x)) - v
        loss = t.inner(v, h)
        t.output(f"loss[{step}]", loss)
        x = x - loss * (tp.n**-0.5 * (w.T @ (v * h)))


def values(**options):
    table = tp.simulate(trained, widths=[60], **options)
    return np.array([row.values for row in table.rows])


def test_seeds_alone_threads_and_memory_change_no_bit():
    found = values(seeds=11, seed=3)
    assert found.std(axis=1).min() > 0
    for k in (0, 4, 10):
        np.testing.assert_array_equal(values(seeds=1, seed=3 + k)[:, 0], found[:, k])
    np.testing.assert_array_equal(values(seeds=11, seed=3, threads=2), found)
    np.testing.assert_array_equal(values(seeds=11, seed=3, memory_limit=200_000), found)


def test_stretches_of_samples_on_threads_change_no_bit():
    """2^16 samples are four stretches of one replicate; blocks of a batch are shorter."""
    rng = np.random.default_rng(0)
    data = tp.Samples(rng.standard_normal((12, 2)).tolist(), rng.standard_normal(12).tolist())
    one = tp.Training(tp.MLP(2, "tanh"), "mup", data, steps=3, lr=0.3, watch=[]).program
    many = tp.Training(tp.MLP(2, "tanh"), "mup", data, steps=2, batch=3, lr=0.3, watch=[]).blocks
    for program, samples in ((one, 2**16), (many, 2**15)):
        runs = [
            [found[name].value for name in found]
            for options in ({"threads": 1}, {"threads": 2}, {"threads": 3, "memory_limit": 10**8})
            for found in [tp.limit(program, samples=samples, replicates=3, **options)]
        ]
        assert runs[0] == runs[1] == runs[2]


@tp.program
def root(t):
    v = t.gaussian("v")
    t.output("root", tp.sqrt(t.inner(v, v) - 1))


def test_the_network_that_explodes_is_said_as_if_alone():
    good = [k for k in range(12) if not explodes(root, 1, k)]
    assert 0 < len(good) < 12
    first = next(k for k in range(12) if k not in good)
    with pytest.raises(Exploded) as alone:
        tp.simulate(root, widths=[50], seeds=1, seed=first)
    with pytest.raises(Exploded) as together:
        tp.simulate(root, widths=[50], seeds=12)
    assert str(together.value) == str(alone.value)


def explodes(program, seeds, seed):
    try:
        tp.simulate(program, widths=[50], seeds=seeds, seed=seed)
    except Exploded:
        return True
    return False


@pytest.mark.parametrize(("steps", "batch", "blocks"), [(9, 1, False), (3, 4, True)])
def test_runs_before_change_no_bit(steps, batch, blocks):
    """Where vectors are found is looked up in the first run of a workspace alone."""
    rng = np.random.default_rng(5)
    data = tp.Samples(rng.normal(size=(40, 3)), rng.normal(size=40))
    run = tp.Training(tp.MLP(3, "tanh"), "mup", data, steps=steps, batch=batch, lr=0.5, watch=())
    program = run.blocks if blocks else run.program
    found = plan(compile_graph(derive(program)).script)
    used, new = (Workspace(found, Setting("limit", 256), 2) for _ in range(2))
    used.run([(0,), (1,)])
    for own, other in zip(used.run([(2,), (3,)]), new.run([(2,), (3,)]), strict=True):
        assert own.scalars == other.scalars
