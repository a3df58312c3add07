"""Derived orders beside slopes measured at finite widths (spec 0, cases 3 to 19 and 45)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles.seed0_data import XI0, XI1
from threadpoolctl import threadpool_limits

import tpcalc as tp
from tpcalc.questions.measure import measure
from tpcalc.questions.orders import Orders, orders
from tpcalc.questions.verdict.probe import probe
from tpcalc.results import OrderRow
from tpcalc.training.parameterizations import lookup

XI2 = (0.5, 0.5, -0.6, -0.1)
QUERY = (-0.2, 0.4, 0.3, 0.5)
DATA = tp.Samples((XI0, XI1, XI2), ((0.0,),) * 3)
WIDTHS = tuple(2**k for k in range(8, 15))

Rows = Mapping[str, OrderRow]


def derived(
    depth: int, act: str, parameterization: str, steps: int, eta: float = 1.0, bias: str = "first"
) -> Orders:
    """Orders of a run with chi = -1 on xi_0, xi_1, xi_2, at the input xi_o (number 1)."""
    net = tp.MLP(depth, act, bias=bias)
    watch = ("h", "x", "dh", "dW_x")
    trained = tp.Training(net, parameterization, DATA, steps=steps, lr=eta, loss="linear")
    run = probe(trained, query=QUERY, watch=watch)
    return orders(run.program)


def measured(found: Orders, widths: Sequence[int] = WIDTHS, seeds: int = 16) -> Rows:
    return {row.name: row for row in measure(found, widths=widths, seeds=seeds).rows}


def agrees(row: OrderRow, exponent: Fraction | int, drift: float = 0.02) -> None:
    """The derived exponent is this one, and so is the slope.

    Its interval is that of 95 %; 50 slopes of a file need twice as much. ``drift`` is what is left
    of smaller terms at these widths.
    """
    assert str(row.n) == str(exponent), row
    assert row.slope is not None and row.low is not None and row.high is not None
    half = (row.high - row.low) / 2
    assert half < 0.15, row
    assert abs(row.slope - float(exponent)) < 2 * half + drift, row


def all_agree(rows: Rows, expected: Mapping[str, str], drift: float = 0.02) -> None:
    for name, exponent in expected.items():
        agrees(rows[name], Fraction(exponent), drift)


def layers(name: str, *exponents: str) -> dict[str, str]:
    return {name.format(k): exponent for k, exponent in enumerate(exponents, 1)}


def test_S0_13_14_case3() -> None:
    """IP ReLU, L = 4, at the start."""
    rows = measured(derived(4, "relu", "ip-llr", 0), seeds=24)
    all_agree(rows, layers("h[{},0,0]", "0", "-1/2", "-1", "-3/2"))
    all_agree(rows, {"f[0,0]": "-2"})
    all_agree(rows, layers("dh[{},0,0]", "-5/2", "-2", "-3/2", "-1"))


def test_S0_13_14_case4() -> None:
    """IP ReLU^2, L = 3, at the start: heavier tails, and a slower approach."""
    rows = measured(derived(3, "relu^2", "ip-llr:2", 0), seeds=24)
    all_agree(rows, layers("h[{},0,0]", "0", "-1/2", "-3/2"), drift=0.05)
    all_agree(rows, {"f[0,0]": "-7/2"}, drift=0.1)
    all_agree(rows, layers("dh[{},0,0]", "-4", "-7/2", "-5/2"), drift=0.1)


def normalised(found: Orders, depth: int, rates: Sequence[Fraction], eta: float) -> tp.Program:
    """The second update applied to the features of step 1, which are of order one."""
    inner = sum(a * b for a, b in zip(XI1, QUERY, strict=True)) + 1.0

    def add(t: tp.Tracer) -> None:
        first = tp.n ** -rates[0] * (eta * inner * t["dh[1,1,0]"])
        t.output("update 1", first)
        for k in range(2, depth + 1):
            size = t.inner(t[f"x[{k - 1},1,0]"], t[f"x[{k - 1},1,1]"])
            t.output(f"update {k}", tp.n ** (-1 - rates[k - 1]) * (eta * size * t[f"dh[{k},1,0]"]))
        last = t.inner(t[f"x[{depth},1,0]"], t[f"x[{depth},1,1]"])
        t.output(f"update {depth + 1}", tp.n ** (-1 - rates[-1]) * (eta * last))

    return tp.extend(found.program, add)


@pytest.mark.slow
def test_S0_19_case9() -> None:
    """Constant gamma(1) after a first step with it: (1, 1/2, 1/2, 1) at features of order one."""
    rates = [Fraction(-2), Fraction(-5, 2), Fraction(-5, 2), Fraction(-2)]
    word = "ac:0,1,1,1;-2,-5/2,-5/2,-2"
    found = derived(3, "relu", word, 2, eta=10.0)
    rows = measured(orders(normalised(found, 3, rates, 10.0)))
    all_agree(rows, layers("update {}", "1", "1/2", "1/2", "1"), drift=0.05)
    # The features of step 2 have exploded below, so the same updates contribute more to step 2.
    exponents = [found[f"dW_x[{k},2,1]"] for k in range(1, 5)]
    assert [str(order.n) for order in exponents] == ["1", "3/2", "2", "3"]
    assert {order.status for order in exponents} == {"exact"}


def test_orders_case8() -> None:
    """Constant gamma(2), ReLU^2, L = 3: the output of step 2 grows like n^42."""
    found = derived(3, "relu^2", "ac:0,1,1,1;-4,-9/2,-9/2,-4", 2)
    assert str(found["f[2,1]"].n) == "42"
    assert str(found["f[2,1]-f[0,1]"].n) == "42"


@pytest.mark.slow
def test_S0_17_case10() -> None:
    """Naive-IP ReLU, L = 3: with biases in all layers, and with one in the first only."""
    rows = measured(derived(3, "relu", "naive-ip", 1, bias="all"))
    all_agree(rows, layers("dW_x[{},1,1]", "-1", "-1/2", "-1", "-2"))
    rows = measured(derived(3, "relu", "naive-ip", 1))
    all_agree(rows, {"f[0,1]": "-3/2", "f[1,1]": "-1"}, drift=0.03)


def test_S0_17_case11() -> None:
    """Naive-IP ReLU, L = 4."""
    rows = measured(derived(4, "relu", "naive-ip", 1))
    all_agree(rows, layers("dW_x[{},1,1]", "-3/2", "-1", "-3/2", "-2"), drift=0.03)
    all_agree(rows, {"f[0,1]": "-2", "f[1,1]": "-2"})


def test_S0_23_case13() -> None:
    """The initial matrix stops to matter in IP-LLR: W^2(0) x^1_1 is of size n^(-1/2)."""

    def add(t: tp.Tracer) -> None:
        t.output("old", t["h[2,1,1]"] - t["dW_x[2,1,1]"])

    found = derived(3, "relu", "ip-llr", 1)
    rows = measured(orders(tp.extend(found.program, add)))
    agrees(rows["old"], Fraction(-1, 2))


@pytest.mark.slow
def test_S0_33_case18() -> None:
    """Trap T1, tanh, L = 3: f_1 vanishes like n^(-1/2), f_2 does not."""
    rows = measured(derived(3, "tanh", "ip-llr", 2, eta=2.0), seeds=24)
    all_agree(rows, layers("h[{},1,1]", "0", "0", "-1/2"), drift=0.03)
    all_agree(rows, {"f[1,1]-f[0,1]": "-1/2", "f[2,1]-f[0,1]": "0"}, drift=0.05)


@pytest.mark.slow
def test_S0_33_case19() -> None:
    """Trap T1, tanh, L = 5: nothing is learned at any step; widths up to 65536."""
    found = derived(5, "tanh", "ip-llr", 3)
    rows = measured(found, [2**k for k in range(10, 17)], seeds=24)
    all_agree(rows, layers("h[{},1,1]", "0", "0", "-1/2", "-1", "-3/2"), drift=0.06)
    for step in (2, 3):
        all_agree(rows, layers(f"h[{{}},{step},1]", "0", "0", "-1/2", "-1/2", "-1"), drift=0.2)
    for step, exponent in ((1, "-3/2"), (2, "-1"), (3, "-1")):
        row = rows[f"f[{step},1]-f[0,1]"]
        assert str(row.n) == exponent
        assert row.slope is not None and row.high is not None
        assert row.high < -0.75  # far from 0: the output stays where it was
        assert abs(row.slope - float(Fraction(exponent))) < 0.4


# --- case 45: calibrated rates, without this package ---------------------------------------------

Values = NDArray[np.float64]
DEPTH, BATCH, INPUTS = 4, 32, 20


class Revealed:
    """A Gaussian matrix known only through W x, W^T d and W y, drawn exactly in law."""

    def __init__(self, width: int, std: float, rng: np.random.Generator) -> None:
        self.width, self.std, self.rng = width, std, rng

    def _drawn(self, columns: int) -> Values:
        return self.std * self.rng.standard_normal((self.width, columns))

    def forward(self, x: Values) -> Values:
        self.right = basis(x)
        self.seen = self._drawn(self.right.shape[1])  # W times the basis
        return self.seen @ (self.right.T @ x)

    def backward(self, d: Values) -> Values:
        self.left = basis(d)
        fresh = self._drawn(self.left.shape[1])
        known = self.right @ (self.seen.T @ self.left)
        self.back = known + fresh - self.right @ (self.right.T @ fresh)  # W^T times the basis
        return self.back @ (self.left.T @ d)

    def again(self, y: Values) -> Values:
        inside = self.right.T @ y
        rest = y - self.right @ inside
        new = basis(rest)
        fresh = self._drawn(new.shape[1])
        fresh -= self.left @ (self.left.T @ fresh)
        return self.seen @ inside + self.left @ (self.back.T @ rest) + fresh @ (new.T @ rest)


def basis(columns: Values) -> Values:
    outer, inner = np.linalg.qr(columns)
    left, sizes, _ = np.linalg.svd(inner)
    return np.asarray(outer @ left[:, sizes > 1e-10 * sizes[0]])


def calibrated(
    act: Callable[[Values], Values],
    slope: Callable[[Values], Values],
    std: float,
    width: int,
    rng: np.random.Generator,
) -> list[float]:
    """Base rates of the first step, layer by layer: each contributes 1 to the second batch."""
    data = np.random.default_rng(45)
    batch, second = (
        np.vstack([data.standard_normal((INPUTS, BATCH)), np.ones(BATCH)]) for _ in range(2)
    )
    chi = data.choice([-0.5, 0.5], BATCH)
    first = std * rng.standard_normal((width, INPUTS + 1)) / math.sqrt(INPUTS + 1)
    matrices = [Revealed(width, std, rng) for _ in range(DEPTH - 1)]
    h = [first @ batch]
    x = [act(h[0])]
    for matrix in matrices:
        h.append(matrix.forward(x[-1]) / width)
        x.append(act(h[-1]))
    gradient = np.repeat(rng.standard_normal((width, 1)) / width, BATCH, 1)
    dh = [gradient] * DEPTH
    for k in reversed(range(DEPTH)):
        dh[k] = gradient * slope(h[k])
        if k:
            gradient = matrices[k - 1].backward(dh[k]) / width
    rates, y = [], second
    for k in range(DEPTH):
        # eta n^(-c_l) with c of IP-LLR for p = 1; a hidden matrix is w / n: twice its power
        power = (DEPTH + 1) / 2 if k == 0 else (DEPTH + 2) / 2 - 2
        kernel = batch.T @ y if k == 0 else x[k - 1].T @ y
        update = -(width**power) * (dh[k] * chi) @ kernel / BATCH
        rates.append(1 / float(np.mean(np.abs(update))))
        start = first @ y if k == 0 else matrices[k - 1].again(y) / width
        y = act(start + rates[-1] * update)
    return rates


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "slope", "std", "expected"),
    [
        (lambda z: np.maximum(z, 0), lambda z: 1.0 * (z > 0), math.sqrt(2), (0, 0, 0, 0)),
        (np.tanh, lambda z: 1 - np.tanh(z) ** 2, 1.0, (0, 0, 0.5, 0.5)),
    ],
    ids=["relu", "tanh"],
)
def test_S0_38_case45(
    act: Callable[[Values], Values],
    slope: Callable[[Values], Values],
    std: float,
    expected: tuple[float, ...],
) -> None:
    """With tanh the calibration makes up for what vanishes: rates that grow like n^(1/2)."""
    widths, seeds = np.array([512, 1024, 2048, 4096]), 40
    rng = np.random.default_rng(7)
    with threadpool_limits(1, "blas"):  # threads that wait for each other in small products
        logs = np.array(
            [
                [np.log(calibrated(act, slope, std, int(m), rng)) for _ in range(seeds)]
                for m in widths
            ]
        )
    x = np.log(widths) - np.mean(np.log(widths))
    slopes = x @ logs.mean(axis=1) / (x @ x)
    errors = np.sqrt(x**2 @ (logs.var(axis=1, ddof=1) / seeds)) / (x @ x)
    assert np.all(errors < 0.12)
    assert np.all(np.abs(slopes - expected) < 4 * errors + 0.03), (slopes, errors)


def test_S0_38_case45_without_calibration() -> None:
    """What the calibration makes up for: the third and the fourth update vanish."""
    found = derived(4, "tanh", "ip-llr", 1)
    rows = [found[f"dW_x[{k},1,1]"] for k in range(1, 5)]
    assert [str(order.n) for order in rows[:2]] == ["0", "0"]
    assert {order.status for order in rows[:2]} == {"exact"}
    bounds = [order.n.constant for order in rows[2:] if order.n is not None]
    assert bounds[0] == Fraction(-1, 2)
    assert bounds[1] is not None and bounds[1] <= -1


@pytest.mark.parametrize(
    ("word", "displacement"), [("mup", Fraction(-1, 2)), ("ip-llr", Fraction(0))]
)
def test_S0_27_case12(word: str, displacement: Fraction) -> None:
    """The first update of a hidden matrix beside the matrix, in Frobenius norm: -1/2, and 0.

    |Delta W|_F = n^(-2a-c) |dh| |x| with norms n^(1/2) times a coordinate, |W|_F = n^(1-a).
    """
    run = probe(tp.Training(tp.MLP(3, "relu", "first"), word), watch=("x", "dh"))
    found = orders(run.program)
    table = lookup(word).exponents(3, 0)
    sizes = found["dh[2,0,0]"], found["x[1,0,0]"]
    assert all(size.status == "exact" for size in sizes)
    total = 1 - 2 * table.a[1] - table.c[1] + sizes[0].n + sizes[1].n - (1 - table.a[1])
    assert total.constant == displacement


@pytest.mark.parametrize(("depth", "act", "p"), [(4, "relu", 1), (3, "relu^2", 2)])
def test_S0_15_case6(depth: int, act: str, p: int) -> None:
    """Every first update of IP-LLR contributes Theta(1)."""
    run = probe(tp.Training(tp.MLP(depth, act, "first"), lookup("ip-llr", p=p)), watch=("dW_x",))
    found = orders(run.program)
    for layer in range(1, depth + 2):
        size = found[f"dW_x[{layer},1,{run.query}]"]
        assert (size.text, size.status) == ("0", "exact")
