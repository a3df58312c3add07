"""``kernel``: its arguments, its routes on many inputs, and the bounds that it states."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import (
    EvaluationError,
    NotDifferentiable,
    ScaleError,
    TpcalcError,
    UnknownName,
    UsageError,
)
from tpcalc.results import Kernel, Method

DRAWS = np.random.default_rng(12)
X = DRAWS.standard_normal((7, 4))


@tp.program
def readout(t: tp.Tracer) -> None:
    x, v = t.gaussian("x"), t.gaussian("v")
    t.output("f", tp.n**0.5 * t.inner(v, tp.tanh(x)))


# -- arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize("act", ["relu", "gelu"])
@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"X": None}, UsageError, "X is not given"),
        ({"X": [1.0, 2.0]}, UsageError, "X has shape"),
        ({"X": [[1e200, 1.0]]}, EvaluationError, "range"),
        ({"X2": [[1.0, 2.0]]}, UsageError, "X2 have 2 features; 4 are needed"),
        ({"X2": []}, UsageError, "X2 has shape"),
        ({"kinds": "spectrum"}, UnknownName, "kind of kernel"),
        ({"kinds": ()}, UsageError, "kinds is empty"),
        ({"layers": [0]}, UsageError, "at least 1"),
        ({"layers": [4]}, UsageError, "layers 1 to 3"),
        ({"layers": 1}, UsageError, "it must be a list"),
        ({"trained": ["W2"]}, UsageError, "of a network give layers"),
        ({"scale": 0}, UsageError, "scale is 0; it must be above 0"),
        ({"scale": math.nan}, UsageError, "finite"),
        ({"method": "mehler"}, UnknownName, "no method called 'mehler'"),
        ({"seed": -1}, UsageError, "seed"),
        ({"threads": 0}, TpcalcError, "threads is 0"),
        ({"labels": ["a"]}, UsageError, "1 label"),
        ({"labels": 5}, TpcalcError, "labels"),
        ({"parameterization": "lecun"}, UnknownName, "parameterization"),
        ({"progress": 1}, UsageError, "progress"),
    ],
)
def test_refused_for_a_network(
    act: str, given: dict[str, Any], error: type[TpcalcError], words: str
) -> None:
    """Whatever the route, with the argument in the message."""
    with pytest.raises(error, match=words):
        tp.kernel(tp.MLP(2, act), **{"X": X, **given})


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"X": X}, UsageError, "inputs written in it"),
        ({"X2": X}, UsageError, "inputs written in it"),
        ({"layers": [1]}, UsageError, "inputs written in it"),
        ({"scale": 2.0}, UsageError, "scale"),
        ({"trained": ["W"]}, UnknownName, "'W'. Known: v, x"),
        ({"method": "exact"}, EvaluationError, "method='exact'"),
    ],
)
def test_refused_for_a_program(given: dict[str, Any], error: type[TpcalcError], words: str) -> None:
    with pytest.raises(error, match=words):
        tp.kernel(readout, **given)


@pytest.mark.parametrize("model", [3, "mlp", None])
def test_what_is_no_model(model: Any) -> None:
    with pytest.raises(TpcalcError, match=f"{model!r}|{type(model).__name__}"):
        tp.kernel(model, X)


def test_program_without_scalar_outputs() -> None:
    @tp.program
    def vectors(t: tp.Tracer) -> None:
        t.output("x", t.gaussian("x"))

    with pytest.raises(UsageError, match="no scalar outputs"):
        tp.kernel(vectors)


@tp.program
def averages(t: tp.Tracer) -> None:
    x = tp.n**-0.5 * (t.matrix("W") @ t.gaussian("z"))
    t.output("mean", tp.mean(tp.tanh(x)))
    t.output("square", tp.mean(x * x))


@tp.program
def sum_and_average(t: tp.Tracer) -> None:
    x = tp.n**-0.5 * (t.matrix("W") @ t.gaussian("z"))
    t.output("f", tp.n**0.5 * t.inner(t.gaussian("v"), x))
    t.output("square", tp.mean(x * x))


@pytest.mark.parametrize(
    ("act", "depth", "counts", "least"),
    [
        pytest.param("gelu", 12, (4, 16, 64), 0.999, marks=pytest.mark.slow),
        ("tanh", 2, (4, 12, 24), 1.1),
    ],
)
def test_more_inputs_state_no_smaller_error(
    act: str, depth: int, counts: tuple[int, ...], least: float
) -> None:
    """Of larger inputs at the end; after 12 layers all inputs are of one length."""
    inputs = np.random.default_rng(0).normal(size=(64, 16)) * np.linspace(1, 3, 64)[:, None]
    net = tp.MLP(depth, act, weight_variance=1.96, bias_variance=0.01)
    errors = [tp.kernel(net, inputs[:count]).error for count in counts]
    # Integrals that are evaluated together share nodes, which moves errors in the last digits.
    assert all(more >= 0.999 * fewer for fewer, more in itertools.pairwise(errors))
    assert errors[-1] >= least * errors[0]


def test_a_surrogate_slope_is_taken_as_it_is_given() -> None:
    """A series would take the slope of the function itself."""
    through = tp.function("through", np.tanh, lambda z: 0 * z + 1, check=False)
    net = tp.MLP(2, through)
    found, other = tp.kernel(net, X), tp.kernel(net, X, method="quadrature")
    own = tp.kernel(tp.MLP(2, "tanh"), X)
    np.testing.assert_allclose(closed(found.ntk), closed(other.ntk), rtol=1e-10)
    np.testing.assert_allclose(closed(found.nngp), closed(own.nngp), rtol=1e-10)
    assert not np.allclose(closed(found.ntk), closed(own.ntk), rtol=0.05)


@pytest.mark.parametrize("name", ["erf", "gelu", "sin", "exp", "gaussian"])
def test_a_function_of_that_name_is_not_the_known_one(name: str) -> None:
    own = tp.function(name, lambda z: np.tanh(z) / 2, lambda z: (1 - np.tanh(z) ** 2) / 2)
    found, half = tp.kernel(tp.MLP(2, own), X), tp.kernel(tp.MLP(2, lambda z: tp.tanh(z) / 2), X)
    np.testing.assert_allclose(closed(found.ntk), closed(half.ntk), rtol=1e-10)


@pytest.mark.parametrize("kinds", [("nngp",), ("ntk",), ("nngp", "ntk")])
def test_averages_have_no_kernel(kinds: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=r"no output .* has a kernel. mean, square: in the limit"):
        tp.kernel(averages, kinds=kinds)
    found = tp.kernel(sum_and_average, kinds=kinds)
    assert "rows of 0 are of square: in the limit" in found.notes[0]
    matrix = found.nngp if found.nngp is not None else found.ntk
    assert matrix is not None and matrix[0, 0] > 0 and not matrix[1].any()


def test_a_network_that_is_0_has_a_kernel() -> None:
    @tp.program
    def nothing(t: tp.Tracer) -> None:
        t.output("f", tp.n**0.5 * t.inner(t.gaussian("v"), tp.tanh(0 * t.gaussian("z"))))

    found = tp.kernel(nothing)
    assert found.ntk is not None and found.ntk[0, 0] == 0 and found.notes == ()


def test_outputs_of_another_size() -> None:
    @tp.program
    def grows(t: tp.Tracer) -> None:
        t.output("f", tp.n * t.inner(t.gaussian("v"), tp.tanh(t.gaussian("x"))))

    with pytest.raises(ScaleError, match="grows like"):
        tp.kernel(grows)

    @tp.program
    def bent(t: tp.Tracer) -> None:
        f = tp.n**0.5 * t.inner(t.gaussian("v"), tp.tanh(t.gaussian("x")))
        t.output("f", tp.tanh(f))

    with pytest.raises(EvaluationError, match="not affine"):
        tp.kernel(bent)


def test_jumps() -> None:
    with pytest.raises(NotDifferentiable, match="step"):
        tp.kernel(tp.MLP(2, "step"), X)
    assert tp.kernel(tp.MLP(2, "step"), X, kinds="nngp").ntk is None


def test_tokens_do_not_fit() -> None:
    with pytest.raises(UsageError, match="3 tokens cannot share"):
        tp.kernel(tp.RNN(3), X)


def test_too_many_inputs_for_particles() -> None:
    with pytest.raises(UsageError, match="number of inputs is 41; it must be at most"):
        tp.kernel(tp.MLP(1, "relu"), np.ones((41, 2)), method="particles")


def test_closed_forms_alone() -> None:
    with pytest.raises(EvaluationError, match=r"method='exact'.*tanh"):
        tp.kernel(tp.MLP(1, "tanh"), X, method="exact")


# -- what the arguments do -------------------------------------------------------------------


def closed(matrix: Any) -> np.ndarray:
    assert isinstance(matrix, np.ndarray)
    return matrix


@pytest.mark.parametrize("net", [tp.MLP(2, "relu"), tp.MLP(2, "gelu", norm="layer")])
def test_kernel_between_two_sets(net: tp.MLP) -> None:
    """A rectangle of the square kernel; kinds alone are the kinds together."""
    square = tp.kernel(net, X)
    part = tp.kernel(net, X[:3], X[3:])
    for kind in ("nngp", "ntk"):
        whole = closed(getattr(square, kind))
        assert np.array_equal(whole, whole.T)
        assert np.linalg.eigvalsh(whole)[0] > 0
        np.testing.assert_allclose(getattr(part, kind), whole[:3, 3:], rtol=1e-13)
        alone = tp.kernel(net, X, kinds=kind)
        np.testing.assert_allclose(getattr(alone, kind), whole, rtol=1e-13)
        assert (alone.ntk is None) == (kind == "nngp")
    assert (square.symmetric, part.symmetric) == (True, False)


@pytest.mark.slow
@pytest.mark.parametrize("parameterization", ["ntk", "mup"])
@pytest.mark.parametrize("net", [tp.MLP(2, "erf"), tp.ResNet(2, "gelu"), tp.RNN(2, "erf")])
def test_layers_add_up(net: Any, parameterization: str) -> None:
    whole = tp.kernel(net, X, kinds="ntk", parameterization=parameterization)
    parts = [
        closed(
            tp.kernel(net, X, kinds="ntk", parameterization=parameterization, layers=[layer]).ntk
        )
        for layer in range(1, net.hidden + 2)
    ]
    assert all(np.diagonal(part).min() > 0 for part in parts)
    np.testing.assert_allclose(sum(parts), whole.ntk, rtol=1e-12, atol=1e-15)


def test_readout_alone_is_the_nngp() -> None:
    found = tp.kernel(tp.ResNet(3, "gelu"), X, layers=[5])
    np.testing.assert_allclose(closed(found.ntk), found.nngp, rtol=1e-13)
    empty = tp.kernel(tp.MLP(1, "gelu"), X, layers=[])
    assert not closed(empty.ntk).any()


@pytest.mark.parametrize("act", ["relu", "gelu"])
def test_scale_and_variances(act: str) -> None:
    """The default is 1/d; a factor of the Gram matrix is the variance of the first layer."""
    plain = tp.kernel(tp.MLP(1, act), X, scale=1 / 4)
    np.testing.assert_array_equal(closed(plain.nngp), tp.kernel(tp.MLP(1, act), X).nngp)
    wide = tp.kernel(tp.MLP(1, act, weight_variance=3), X, scale=1 / 4)
    scaled = tp.kernel(tp.MLP(1, act), X, scale=3 / 4)
    np.testing.assert_allclose(closed(wide.nngp), scaled.nngp, rtol=1e-13)
    np.testing.assert_allclose(closed(wide.ntk), scaled.ntk, rtol=1e-13)


def test_mup_starts_at_zero() -> None:
    """The readout of size 1/n: no NNGP, and the NTK of the NTK parameterization."""
    mup = tp.kernel(tp.MLP(2, "relu"), X, parameterization="mup")
    assert not closed(mup.nngp).any()
    np.testing.assert_allclose(closed(mup.ntk), tp.kernel(tp.MLP(2, "relu"), X).ntk, rtol=1e-12)


@pytest.mark.parametrize("act", ["gelu", "tanh", "sin"])
def test_an_input_that_is_zero(act: str) -> None:
    """Without biases f(0) = 0 and has no gradient, where act(0) = 0."""
    found = tp.kernel(tp.MLP(2, act), [[0.0, 0.0], [1.0, 2.0]])
    for matrix in (closed(found.nngp), closed(found.ntk)):
        assert matrix[0].tolist() == [0, 0]
        assert matrix[1, 1] > 0.1


def test_a_zero_input_has_a_closed_form_where_slopes_jump() -> None:
    """ReLU layer by layer: one zero among the inputs takes nothing from the others."""
    found = tp.kernel(tp.MLP(2, "relu"), [[0.0, 0.0], [1.0, 2.0]], layers=[1, 2, 3])
    chain = tp.kernel(tp.MLP(2, "relu"), [[0.0, 0.0], [1.0, 2.0]])
    np.testing.assert_allclose(closed(found.ntk), chain.ntk, rtol=1e-12)
    assert found.method is Method.EXACT


@pytest.mark.slow
@pytest.mark.parametrize("act", ["relu", "gelu"])
def test_a_bias_of_the_readout_adds_one(act: str) -> None:
    inner, every = (tp.kernel(tp.MLP(2, act, bias=word), X) for word in ("hidden", "all"))
    np.testing.assert_allclose(closed(every.nngp), closed(inner.nngp) + 1, rtol=1e-13)
    np.testing.assert_allclose(closed(every.ntk), closed(inner.ntk) + 1, rtol=1e-13)


def test_many_inputs_are_evaluated_in_tiles() -> None:
    """More than one tile, any number of threads: the same digits as pair by pair."""
    many = np.random.default_rng(3).standard_normal((260, 5))
    net = tp.MLP(2, "sin", bias_variance="1/10")
    found = tp.kernel(net, many)
    again = tp.kernel(net, many, threads=1)
    for kind in ("nngp", "ntk"):
        whole = closed(getattr(found, kind))
        np.testing.assert_array_equal(whole, getattr(again, kind))
        for i, j in ((0, 259), (191, 192), (200, 200), (3, 5)):
            pair = tp.kernel(net, many[[i]], many[[j]])
            assert whole[i, j] == pytest.approx(closed(getattr(pair, kind))[0, 0], rel=1e-13)
        if kind == "nngp":
            assert np.array_equal(whole, whole.T)
    assert found.error < 1e-12


def test_several_outputs() -> None:
    """Outputs that share features are correlated: shape (N, K, M, K)."""
    found = tp.kernel(tp.RNN(2, "erf", outputs="all"), X, X[:3])
    assert closed(found.nngp).shape == (7, 2, 3, 2)
    last = tp.kernel(tp.RNN(2, "erf"), X, X[:3])
    np.testing.assert_allclose(closed(found.ntk)[:, 1, :, 1], last.ntk, rtol=1e-13)


def test_progress_and_labels() -> None:
    seen: list[float] = []
    found = tp.kernel(
        tp.MLP(2, "gelu"), X, labels=range(7), progress=lambda part, text: seen.append(part)
    )
    assert found.labels == tuple(map(str, range(7)))
    assert seen
    assert seen[-1] == 1.0


def test_digests_name_the_network() -> None:
    """Of what was written, not of where it lies in memory."""

    def digest(net: tp.MLP) -> str:
        return tp.kernel(net, X[:2], kinds="nngp").provenance.program_digest

    assert digest(tp.MLP(2, "gelu")) == digest(tp.MLP(2, "gelu"))
    assert digest(tp.MLP(2, "gelu")) != digest(tp.MLP(3, "gelu"))
    assert digest(tp.MLP(1, lambda z: z**3)) == digest(tp.MLP(1, lambda z: z**3))
    assert digest(tp.MLP(1, lambda z: z**3)) != digest(tp.MLP(1, lambda z: z**5))


def test_particles_are_reproducible() -> None:
    net = tp.MLP(1, "tanh")
    first, again = (tp.kernel(net, X[:2], method="particles", seed=5) for _ in range(2))
    other = tp.kernel(net, X[:2], method="particles", seed=6)
    assert np.array_equal(closed(first.ntk), again.ntk)
    assert not np.array_equal(closed(first.ntk), other.ntk)
    assert first.method is Method.PARTICLES


# -- bounds ----------------------------------------------------------------------------------


def arc_cosine(x: np.ndarray, y: np.ndarray, depth: int) -> tuple[Any, Any, Any]:
    """K(x, y), T(x, y) and sqrt(K(x, x) K(y, y)) of ReLU networks in 50 digits."""
    mp = mpmath.mp
    own, other, cross = (
        sum(mp.mpf(float(p)) * mp.mpf(float(q)) for p, q in zip(u, v, strict=True)) / len(x)
        for u, v in ((x, x), (y, y), (x, y))
    )
    tangent = cross
    for _ in range(depth):
        size = mp.sqrt(own * other)
        angle = mp.acos(max(-1, min(1, cross / size)))
        cross = size / (2 * mp.pi) * (mp.sin(angle) + (mp.pi - angle) * mp.cos(angle))
        tangent = cross + (mp.pi - angle) / (2 * mp.pi) * tangent
        own, other = own / 2, other / 2
    return cross, tangent, mp.sqrt(own * other)


def true_error(found: Kernel, x: np.ndarray, y: np.ndarray, depth: int) -> float:
    cross, tangent, size = arc_cosine(x, y, depth)
    of_tangent = mpmath.sqrt(arc_cosine(x, x, depth)[1] * arc_cosine(y, y, depth)[1])
    return float(
        max(
            abs(closed(found.nngp)[0, 1] - cross) / size,
            abs(closed(found.ntk)[0, 1] - tangent) / of_tangent,
        )
    )


def claimed(found: Kernel) -> float:
    return max(found.error, found.coincident_error or 0.0)


@pytest.mark.parametrize("depth", [1, 6])
@pytest.mark.parametrize("sign", [1, -1], ids=["near", "opposite"])
def test_bounds_hold_where_inputs_nearly_coincide(depth: int, sign: int) -> None:
    """There the NTK moves with the square root of the correlation: both routes say how far."""
    draws = np.random.default_rng(depth)
    net = tp.MLP(depth, "relu")
    with mpmath.workdps(50):
        for gap in (1e-1, 1e-4, 1e-7, 1e-10, 1e-14):
            x = draws.standard_normal(9)
            y = sign * (x + gap * draws.standard_normal(9))
            chain = tp.kernel(net, [x, y])
            planes = tp.kernel(net, [x, y], layers=range(1, depth + 2))
            assert true_error(chain, x, y, depth) <= claimed(chain) < 1e-13
            assert true_error(planes, x, y, depth) <= claimed(planes) < 1e-13


@pytest.mark.parametrize(
    "act",
    [
        "identity",
        "leaky_relu:-0.5",
        lambda z: -tp.relu(-2 * z),
        lambda z: tp.relu(3 * z) / 2,
        lambda z: 0.5 * tp.erf(z / 3),
        lambda z: -2 * tp.erf(-z),
    ],
)
def test_chains_of_multiples_agree_with_their_programs(act: Any) -> None:
    """a |z| + b z and a erf(b z) in other words, with biases and in residual blocks."""
    for net in (
        tp.MLP(2, act, weight_variance="3/2", bias_variance="3/10"),
        tp.ResNet(2, act, alpha="3/4", weight_variance="3/2", bias_variance="2/5"),
    ):
        chain = tp.kernel(net, X[:3], X[3:])
        program = tp.kernel(net, X[:3], X[3:], layers=range(1, net.hidden + 2))
        assert ("route", "fused chain") in chain.provenance.settings
        for kind in ("nngp", "ntk"):
            gap = closed(getattr(chain, kind)) - closed(getattr(program, kind))
            own = np.sqrt(np.diagonal(closed(getattr(tp.kernel(net, X), kind))))
            bound = claimed(chain) + claimed(program)
            assert np.max(np.abs(gap) / np.outer(own[:3], own[3:])) <= bound < 1e-10


def independent_pairs(kernels: Sequence[Kernel]) -> list[tuple[np.ndarray, float]]:
    return [(closed(found.ntk), found.error) for found in kernels]


@pytest.mark.parametrize("act", ["gelu", "relu", "abs", "sin", "elu:1", "leaky_relu:0.1", "erf"])
def test_closed_forms_and_quadrature_agree_within_their_bounds(act: str) -> None:
    net = tp.MLP(2, act, weight_variance="3/2", bias_variance="1/5")
    found = [tp.kernel(net, X, method=method) for method in ("exact", "quadrature")]
    assert [kernel.method for kernel in found] == [Method.EXACT, Method.QUADRATURE]
    (left, first), (right, second) = independent_pairs(found)
    size = np.sqrt(np.outer(np.diagonal(left), np.diagonal(left)))
    assert np.max(np.abs(left - right) / size) <= first + second < 1e-11


def test_the_order_of_arguments_is_told() -> None:
    data = tp.Samples([[0.6, -0.3]], [1])
    with pytest.raises(UsageError, match=r"kernel\(net, data.inputs, parameterization='ntk'\)"):
        tp.kernel(tp.MLP(2), "ntk", data)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="masked entries"):
        tp.kernel(tp.MLP(2), np.ma.masked_array([[1.0, 2.0]], [[False, True]]))


def test_errors_that_were_followed_go_before_smaller_ones_that_were_not() -> None:
    """Steep functions of near inputs: single integrals know nothing of what covariances lost."""
    x = np.random.default_rng(0).standard_normal(8)
    inputs, variance, bias, depth = np.array([x, x * 1.001]), 4000.0, 0.01, 5
    found = tp.kernel(
        tp.MLP(depth, "erf", weight_variance=variance, bias_variance=bias), inputs, kinds="ntk"
    )
    mp, mpf = mpmath.mp, mpmath.mpf
    with mp.workdps(40):
        rows = [[mpf(value) for value in row] for row in inputs.tolist()]
        pairs = [(0, 0), (1, 1), (0, 1)]
        k = [mpf(variance) * mp.fdot(rows[i], rows[j]) / 8 + mpf(bias) for i, j in pairs]
        tangent = list(k)
        for layer in range(depth):
            weight, shift = (variance, mpf(bias)) if layer < depth - 1 else (1, 0)
            squares = [(1 + 2 * k[i]) * (1 + 2 * k[j]) for i, j in pairs]
            values = [mp.asin(2 * c / mp.sqrt(p)) for c, p in zip(k, squares, strict=True)]
            slopes = [2 / mp.sqrt(p - 4 * c * c) for c, p in zip(k, squares, strict=True)]
            last, k = tangent, [2 * weight / mp.pi * value + shift for value in values]
            grown = zip(slopes, last, strict=True)
            grown = [2 * weight / mp.pi * slope * one for slope, one in grown]
            tangent = [a + b for a, b in zip(grown, k, strict=True)]
        off = abs(mpf(float(found.ntk[0, 1])) - tangent[2]) / mp.sqrt(tangent[0] * tangent[1])
    assert 1e-9 < off < found.coincident_error
