"""Training of residual networks whose blocks are correlated along the depth at the start."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import tpcalc as tp
from tpcalc.errors import UsageError
from tpcalc.finite.training.curve import trained
from tpcalc.program.along import along_of

Array = NDArray[np.float64]
X, Y = np.array([[1.3, -0.2], [0.7, 0.5]]), np.array([0.9, -0.4])
DATA = tp.Samples(tuple(map(tuple, X)), tuple((y,) for y in Y))
BETWEEN: dict[str, object] = {"nonlin": "between", "layers": 2}
DEPTH, STEPS, LR = 3, 2, 0.5
ACTS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "relu": (lambda z: np.maximum(z, 0), lambda z: (z > 0).astype(float)),
}


def run(act: str, law: str, shape: dict[str, object], **settings: object) -> tp.Training:
    net = tp.ResNet("L", act, alpha="1/2", along=law, **shape)
    asked = {"steps": STEPS, "batch": 2, "lr": LR, **settings}
    return tp.Training(net, asked.pop("parameterization", "mup"), DATA, **asked)


def dense(n: int, act: str, law: str, layers: int, seed: int) -> Array:
    """Outputs of all steps of a network whose matrices are drawn together and formed."""
    rng, (value, slope) = np.random.default_rng([seed, n]), ACTS[act]
    row = along_of(law).autocovariance(DEPTH)
    root = np.linalg.cholesky(row[abs(np.subtract.outer(range(DEPTH), range(DEPTH)))])
    matrices = [
        np.tensordot(root, rng.standard_normal((DEPTH, n, n)), 1) / n**0.5 for _ in range(layers)
    ]
    first, last, a = rng.standard_normal((n, 2)), rng.standard_normal(n), DEPTH**-0.5
    outer, inner = matrices[-1], matrices[0] if layers == 2 else None
    found = []
    for _ in range(STEPS + 1):
        x, entered, read = first @ X.T, [], []
        for k in range(DEPTH):
            entered.append(x)
            read.append(x if inner is None else inner[k] @ x)
            x = x + a * outer[k] @ value(read[k])
        f = last @ x / n
        found.append(f)
        chi = (f - Y) / len(Y)
        dx, moved = np.outer(last, chi), x @ chi
        for k in reversed(range(DEPTH)):
            back = a * (outer[k].T @ dx) * slope(read[k])
            outer[k] -= LR * a * dx @ value(read[k]).T / n
            if inner is not None:
                old = inner[k].copy()
                inner[k] -= LR * back @ entered[k].T / n
                back = old.T @ back
            dx = dx + back
        last, first = last - LR * moved, first - LR * dx @ X
    return np.array(found)


CASES = [("fgn(9/10)", "tanh", BETWEEN), ("rbf(1/2)", "relu", {})]


@pytest.mark.slow
@pytest.mark.parametrize(("law", "act", "shape"), CASES, ids=str)
def test_trained_networks_tend_to_the_limit_like_one_over_n(
    law: str, act: str, shape: dict[str, object]
) -> None:
    found, fresh = (
        tp.limit(tp.at_depth(run(act, one, shape), DEPTH).program, seed=0) for one in (law, "fresh")
    )
    rows = []
    for width, seeds in ((96, 600), (288, 200)):
        drawn = np.array([dense(width, act, law, 2 if shape else 1, s) for s in range(seeds)])
        rows.append((drawn.mean(0), drawn.std(0, ddof=1) / seeds**0.5))
    (few, error), (many, more) = rows
    ends, errors = (3 * many - few) / 2, np.hypot(3 * more, error) / 2
    told = 0.0
    for step, sample in np.ndindex(STEPS + 1, 2):
        own, other = (one[f"f[{step},{sample}]"] for one in (found, fresh))
        end, off = ends[step, sample], errors[step, sample]
        assert abs(end - own.value) < 5 * np.hypot(off, own.stderr), (step, sample)
        told = max(told, abs(end - other.value) / off)
    assert told > 6  # independent blocks have another limit


@pytest.mark.parametrize("shape", [{}, BETWEEN], ids=str)
def test_no_correlation_is_that_of_independent_blocks(shape: dict[str, object]) -> None:
    one, two = (
        tp.limit(run("identity", law, shape, steps=1), depths=[2]) for law in ("given(1)", "fresh")
    )
    assert "given(1) along the depth" in " ".join(one.notes) or shape
    for row in two.rows:
        assert one.at(row.name, 2).value == pytest.approx(row.estimate.value, rel=1e-9)


def test_networks_are_drawn_with_the_law_of_the_run() -> None:
    pytest.importorskip("torch")
    own = tp.at_depth(run("tanh", "fgn(9/10)", BETWEEN, steps=1, lr=0), 4)
    _, network = trained(own, 64, 3)
    for place in (1, 2):
        names = [f"W{block + 1}.{place}" for block in range(1, 5)]
        drawn = np.array([network.parameters[name].numpy().ravel() for name in names])
        gap = (
            np.corrcoef(drawn)
            - along_of("fgn(9/10)").autocovariance(4)[abs(np.subtract.outer(range(4), range(4)))]
        )
        assert np.abs(gap).max() < 5 / 64


@pytest.mark.parametrize("bias", [True, "zero"])
def test_weights_and_biases_of_a_network_of_ones_own(bias: bool | str) -> None:
    pytest.importorskip("torch")

    @tp.network
    def net(t, x):
        def block(layer, z):
            linear = t.linear(t.n, t.n, bias=bias, along="fgn(4/5)", name="w")
            return z + tp.tanh(linear(z)) / 2

        x = t.linear(t.n, "in")(x)
        return t.linear(t.outputs, t.n)(t.repeat("L", x, block))

    own = tp.at_depth(tp.Training(net, "mup", DATA, steps=1, lr=LR), 3)
    found = tp.limit(own.program, seed=0, outputs=["f[1,0]"])["f[1,0]"]
    table = tp.simulate(own, [256], 100, backend="dense", seed=1, outputs=["f[1,0]"])
    values = np.array(table.rows[0].values)
    error = np.hypot(values.std(ddof=1) / len(values) ** 0.5, found.stderr)
    assert abs(values.mean() - found.value) < 5 * error
    _, drawn = trained(own.replace(lr=0), 64, 3)
    biases = np.array([drawn.parameters[f"w.bias.{k}"].numpy() for k in (1, 2, 3)])
    assert (np.abs(biases).max() == 0) == (bias == "zero")


@pytest.mark.parametrize(
    "settings",
    [{"optimizer": "adamw(decay=0.1)"}, {"parameterization": "ip-llr"}],
    ids=str,
)
def test_a_start_that_fades_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"does not keep its start|alike"):
        tp.at_depth(run("relu", "fgn(3/4)", BETWEEN, **settings), 3)
