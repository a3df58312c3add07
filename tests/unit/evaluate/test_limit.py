"""``tp.limit``: seeds, threads, error targets, memory, interruption, limit variables."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
from agree import agree
from one_output import made

import tpcalc as tp
from tpcalc.errors import (
    EvaluationError,
    Exploded,
    LimitError,
    ScaleError,
    UnknownName,
    UsageError,
)
from tpcalc.results import Status

DATA = tp.Samples(((0.6, -0.3), (0.1, 0.7)), ((1.0,), (-1.0,)))


def program(steps: int = 3, **options: object) -> tp.Program:
    return tp.train(tp.MLP(3, "tanh"), "mup", DATA, steps=steps, lr=0.5, **options)  # type: ignore[arg-type]


def test_seeds_matter_and_repeat() -> None:
    one, same, other = (
        tp.limit(program(), samples=2**8, seed=seed, outputs=["f[3,0]"])["f[3,0]"].value
        for seed in (1, 1, 2)
    )
    assert one == same != other


def test_the_standard_error_is_that_of_few_replicates() -> None:
    for count in (2, 3):
        found = tp.limit(program(), samples=2**6, replicates=count, outputs=["f[3,0]"])["f[3,0]"]
        assert len(found.draws) == count
        spread = statistics.stdev(found.draws)
        assert found.stderr == pytest.approx(spread / math.sqrt(count), rel=1e-9)


def test_error_target_adds_samples() -> None:
    target = 2e-4
    found = tp.limit(program(), samples=2**6, rel_error=target, outputs=["f[3,0]"])
    value = found["f[3,0]"]
    assert value.stderr <= target * abs(value.value)
    assert value.samples > 2**6
    assert value.status is Status.CONVERGED


def test_error_target_that_is_not_met_says_so() -> None:
    found = tp.limit(program(), samples=2**6, rel_error=1e-9, max_samples=2**7, outputs=["f[3,0]"])
    assert found["f[3,0]"].status is Status.TOLERANCE_NOT_REACHED
    assert any("not reached" in note for note in found.table.notes)


@pytest.mark.parametrize("square", [25, 36, 45])
def test_an_integral_is_told_to_a_millionth(square: int) -> None:
    """E exp(c a) tanh(b) = exp(c^2/2) E tanh(z + c/2), whose weight lies c deviations away."""
    shift = math.sqrt(square)

    @tp.program
    def far(t: tp.Tracer) -> None:
        a, b = t.gaussians(["a", "b"], cov=[[1, 0.5], [0.5, 1]])
        t.output("q", t.mean(tp.exp(shift * a) * tp.tanh(b)))

    found = tp.limit(far, samples=2**10)["q"]
    true = math.exp(square / 2) * tp.expect(lambda z: tp.tanh(z + shift / 2)).value
    if found.method.value == "quadrature":
        assert abs(found.value - true) <= found.error[0] <= 1e-6 * true
    assert (found.method.value == "quadrature") or square > 25


def test_float32_storage_is_close() -> None:
    names = ["f[3,0]"]
    wide = tp.limit(program(), samples=2**10, seed=3, outputs=names)["f[3,0]"]
    narrow = tp.limit(program(), samples=2**10, seed=3, outputs=names, storage="float32")["f[3,0]"]
    assert wide.value != narrow.value
    assert abs(wide.value - narrow.value) < 1e-5


@pytest.mark.parametrize("threads", [1, 2])
def test_interruption_stops_the_workers(threads: int) -> None:
    calls = []

    def progress(fraction: float, text: str) -> None:
        calls.append(fraction)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tp.limit(program(20), samples=2**14, replicates=50, threads=threads, progress=progress)
    assert len(calls) == 1


def test_progress_reaches_the_end() -> None:
    seen: list[float] = []
    tp.limit(program(), samples=2**8, progress=lambda fraction, text: seen.append(fraction))
    assert seen[-1] == pytest.approx(1.0)


def test_explosion_is_an_error_with_a_name() -> None:
    @tp.program
    def explosive(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        for _ in range(12):
            v = v * v
        t.output("vv", t.inner(v, v))

    with pytest.raises(Exploded, match="range"):
        tp.limit(explosive, samples=2**12)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"samples": 1000}, EvaluationError),
        ({"replicates": 1}, UsageError),
        ({"rel_error": 0.0}, UsageError),
        ({"storage": "half"}, UnknownName),
    ],
)
def test_bad_settings(options: dict[str, object], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        tp.limit(program(), **options)  # type: ignore[arg-type]


def test_limit_variable() -> None:
    @tp.program
    def pair(t: tp.Tracer) -> None:
        v, w = t.gaussian("v"), t.matrix("W")
        h = tp.n**-0.5 * (w @ v)
        t.output("h", h)
        t.output("y", tp.n**-0.5 * (w @ tp.relu(v)))

    found = tp.limit(pair, samples=2**12, replicates=16)
    h, y = found["h"], found["y"]
    agree(h.second_moment, 1.0)
    agree(h.moment(lambda z: z**4), 3.0)
    agree(h.moment(tp.relu), 1 / np.sqrt(2 * np.pi))
    agree(h.cov(y), 0.5)
    sample = y.sample(10_000)
    assert sample.shape == (10_000,)
    assert abs(sample.var() - 0.5) < 0.05
    agree(y.moment(tp.tanh), 0.0)


def test_a_vanishing_scalar_is_zero_even_where_its_number_is_needed() -> None:
    @tp.program
    def shared(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        square = t.inner(v, v)
        t.output("small", tp.n**-0.5 * square)
        t.output("square", square)

    found = tp.limit(shared, samples=2**8)
    assert (found["small"].value, found["small"].method.value) == (0.0, "exact")
    agree(found["square"], 1.0)


def test_limit_variables_without_their_power() -> None:
    """Moments and covariances are those of Z, whatever the power of n or the symbols in it."""

    @tp.program
    def powers(t: tp.Tracer) -> None:
        w, v = t.matrix("W"), t.gaussian("v")
        t.output("small", tp.n ** -tp.symbol("a") * (w @ v))
        t.output("large", w @ v)
        t.output("zero", 0 * v)

    found = tp.limit(powers, values={"a": Fraction(3, 2)}, samples=2**10)
    small, large = found["small"], found["large"]
    assert (str(small.n_power), str(large.n_power)) == ("-1", "1/2")
    agree(small.cov(small), 1.0)
    agree(small.cov(large), 1.0)
    agree(large.moment(lambda z: z**4), 3.0)
    assert found["zero"].sample(5).tolist() == [0.0] * 5


def test_an_error_target_stops_where_memory_ends() -> None:
    found = tp.limit(
        program(), samples=2**6, rel_error=1e-9, memory_limit=1_000_000, outputs=["f[3,0]"]
    )["f[3,0]"]
    assert found.status is Status.TOLERANCE_NOT_REACHED
    assert found.samples > 2**6


def test_random_outputs_are_joint_over_inputs() -> None:
    """NTK outputs at the start: N(0, E x x') over inputs, equal for equal inputs."""
    data = tp.Samples(((1.0, 0.0),), ((1.0,),))
    net = tp.MLP(1, "linear")
    queries = [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0)]
    made = tp.train(net, "ntk", data, steps=0, queries=queries, watch=())
    found = tp.limit(made, samples=2**8, replicates=200, seed=2, method="particles")
    draws = np.array([found[f"f[0,{i}]"].draws for i in range(4)])
    assert found["f[0,0]"].random
    np.testing.assert_allclose(draws[1], draws[0], atol=1e-6)
    np.testing.assert_allclose(draws[2], -draws[0], atol=1e-6)
    assert abs(np.mean(draws[3] * draws[0])) < 5 / np.sqrt(200)
    assert abs(draws[0].var() - 1) < 5 * np.sqrt(2 / 200)


def test_float32_falls_back_where_directions_nearly_depend() -> None:
    """One repeated input and a tiny rate: single precision would lose orthogonality."""
    data = tp.Samples(((1.0, 0.5),), ((1.0,),))
    made = tp.train(tp.MLP(2, "tanh"), "mup", data, steps=4, lr=1e-3, watch=())
    wide, narrow = (
        tp.limit(made, samples=2**9, replicates=4, storage=storage)["f[4,0]"].draws
        for storage in ("float64", "float32")
    )
    assert wide == narrow


@pytest.mark.slow
def test_a_hundred_thousand_nodes() -> None:
    """Deep programs build, derive and run without recursion."""

    @tp.program
    def deep(t: tp.Tracer) -> None:
        h = t.gaussian("v")
        for _ in range(50_000):
            h = tp.tanh(h) + h
        t.output("h", h)

    made = deep.build()
    assert len(made.nodes) >= 100_000
    found = tp.limit(made, samples=2, replicates=2, threads=1)
    assert np.isfinite(found["h"].second_moment.value)


def test_division_by_an_average_that_vanishes_is_refused() -> None:
    """E tanh u tanh v is 0 by symmetry: the quotient grows like n^(1/2)."""

    def quotient(t: tp.Tracer, u: tp.Vector, v: tp.Vector, w: tp.Vector) -> tp.Scalar:
        return t.inner(tp.tanh(v), tp.tanh(v)) / t.inner(tp.tanh(u), tp.tanh(w))

    with pytest.raises(ScaleError, match=r"q grows like n\^\(1/2\)"):
        tp.limit(made(quotient, "uvw"), samples=2**10)
    one = made(lambda t, u, v: quotient(t, u, v, u), "uv")
    assert tp.limit(one, samples=2**10)["q"].z(1.0) < 5


@pytest.mark.parametrize("jump", [tp.step, tp.sign])
def test_a_jump_at_a_sampled_zero_is_refused(jump: object) -> None:
    """E u^2 - 1 is 0, so that its step is a coin; the replicates differ, and no mean means much."""

    vote = made(lambda t, u: jump(t.inner(u, u) - 1), "u")  # type: ignore[operator]
    with pytest.raises(LimitError, match="read at a number"):
        tp.limit(vote, samples=2**10)
