"""Maps that start at 0, square or not, single or in blocks: limits, kernels, rates of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch

import tpcalc as tp
from tests.agree import agree
from tpcalc.results import Estimate, Method

DATA = tp.Samples([[1.0, 0.5]], [[1.0]])
OTHER = (0.5, -0.25)
OWN = ("1", "n^(-1/2)", "n^(-1)")
NTK = (None, None, None)
Weights = dict[str, torch.Tensor]


def body(t: Any, x: Any, init: Sequence[str | None], block: Callable[..., Any]) -> Any:
    first, hidden, last = init
    h = tp.tanh(t.linear(t.n, "in", init=first, name="emb")(x))
    h = block(t, h, hidden)
    return t.linear(t.outputs, t.n, init=last, name="read")(h)


def down(t: Any, h: Any, init: str | None) -> Any:
    """Two feed-forward blocks, whose last maps start at 0 and are summed."""
    t.dim("ff", 2)
    u = t.linear("ff", t.n, axes={"k": 2}, init=init, name="up")(h)
    return h + t.linear(t.n, "ff", axes={"k": 2}, over="k", init=0, name="down")(tp.tanh(u))


def up(t: Any, h: Any, init: str | None) -> Any:
    t.dim("ff", 2)
    u = t.linear("ff", t.n, init=0, name="up")(h)
    return h + t.linear(t.n, "ff", init=init, name="down")(tp.sigmoid(u))


def tied(t: Any, h: Any, init: str | None) -> Any:
    t.dim("ff", 2)
    w = t.linear("ff", t.n, init="0", name="w")
    return h + w.T(tp.sigmoid(w(h)))


def adapter(t: Any, h: Any, init: str | None) -> Any:
    """Low rank n/4 beside a map that is drawn."""
    t.dim("r", "1/4")
    a, b = t.linear("r", t.n, init=init, name="a"), t.linear(t.n, "r", init=0, name="b")
    return tp.tanh(t.linear(t.n, t.n, init=init, name="w")(h) + b(a(h)))


def torch_down(w: Weights, h: torch.Tensor) -> torch.Tensor:
    return h + torch.einsum("kij,kj->i", w["down"], torch.tanh(w["up"] @ h))


def torch_up(w: Weights, h: torch.Tensor) -> torch.Tensor:
    return h + w["down"] @ torch.sigmoid(w["up"] @ h)


def torch_tied(w: Weights, h: torch.Tensor) -> torch.Tensor:
    return h + w["w"].T @ torch.sigmoid(w["w"] @ h)


def torch_adapter(w: Weights, h: torch.Tensor) -> torch.Tensor:
    return torch.tanh(w["w"] @ h + w["b"] @ (w["a"] @ h))


Shapes = Mapping[str, tuple[tuple[int, ...], float]]  # of n: the sizes in n, and the deviation
CASES: dict[str, tuple[Any, Any, Shapes]] = {
    "down": (down, torch_down, {"up": ((2, -2, -1), 1.0), "down": ((2, -1, -2), 0.0)}),
    "up": (up, torch_up, {"up": ((-2, -1), 0.0), "down": ((-1, -2), 1.0)}),
    "tied": (tied, torch_tied, {"w": ((-2, -1), 0.0)}),
    "adapter": (
        adapter,
        torch_adapter,
        {"w": ((-1, -1), 1.0), "a": ((-0.25, -1), 1.0), "b": ((-1, -0.25), 0.0)},
    ),
}


def drawn(shapes: Shapes, n: int, seed: int, power: float, last: float) -> Weights:
    """Weights with deviations n^power between widths, n^last of the readout."""
    torch.manual_seed(seed)

    def entries(sizes: Sequence[float], scale: float) -> torch.Tensor:
        shape = [size if size > 0 else round(-size * n) for size in sizes]
        return (scale * torch.randn(shape, dtype=torch.float64)).requires_grad_()

    found = {"emb": entries((-1, 2), 1.0), "read": entries((-1,), n**last)}
    return found | {k: entries(sizes, std * n**power) for k, (sizes, std) in shapes.items()}


def output(block: Any, w: Weights, x: Sequence[float]) -> torch.Tensor:
    h = torch.tanh(w["emb"] @ torch.tensor(x, dtype=torch.float64))
    return w["read"] @ block(w, h)


def trained(name: str, n: int, seed: int, optimizer: str, steps: int) -> float:
    """The output after some steps with the rates of mup, of the weights themselves."""
    _, block, shapes = CASES[name]
    w = drawn(shapes, n, seed, -0.5, -1.0)
    sgd = {"emb": n, "read": 1 / n}
    powers = sgd if optimizer == "sgd" else {k: 1 / n for k in w} | {"emb": 1.0}
    for _ in range(steps):
        loss = (output(block, w, DATA.inputs[0]) - DATA.targets[0][0]) ** 2 / 2
        for (key, weight), slope in zip(
            w.items(), torch.autograd.grad(loss, list(w.values())), strict=True
        ):
            step = slope if optimizer == "sgd" else slope.sign()
            w[key] = (weight - 0.25 * powers.get(key, 1.0) * step).detach().requires_grad_()
    return float(output(block, w, OTHER).detach())


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [
        pytest.param(name, optimizer, marks=[pytest.mark.slow] * (name == "tied"))
        for name in CASES
        for optimizer in ("sgd", "sign")
    ],
)
def test_limits_of_training_are_those_of_explicit_networks(name: str, optimizer: str) -> None:
    net = tp.network(body, init=OWN, block=CASES[name][0])
    hidden = [mark.label for mark in net.marks if mark.role == "hidden"]
    sign = optimizer == "sign"
    rates = {"emb": 0 if sign else 1, "read": -1} | {k: -1 if sign else 0 for k in hidden}
    groups = {label: {"power": str(power)} for label, power in rates.items()}
    program = tp.train(net, "own", DATA, steps=2, lr=0.25, optimizer=optimizer, groups=groups,
                       queries=[OTHER], watch=())  # fmt: skip
    (found,) = (row.estimate for row in tp.limit(program, samples=2**12, seed=1).table.scalars
                if row.name == "f[2,1]")  # fmt: skip
    n = 512
    values = np.array([trained(name, n, seed, optimizer, 2) for seed in range(12)])
    stderr = float(values.std(ddof=1)) / len(values) ** 0.5
    finite = Estimate(float(values.mean()), stderr, Method.FINITE, replicates=len(values))
    agree(found, finite, rounding=8 / n)


@pytest.mark.parametrize("name", CASES)
def test_tangent_kernels_are_those_of_explicit_networks(name: str) -> None:
    _, block, shapes = CASES[name]
    net = tp.network(body, init=NTK, block=CASES[name][0])
    kernel = tp.kernel(net, [DATA.inputs[0], OTHER], parameterization="ntk", scale=1, seed=3)
    n, entries = 512, []
    for seed in range(12):
        w = drawn(shapes, n, seed, -0.5, -0.5)
        slopes = [torch.autograd.grad(output(block, w, x), list(w.values()))
                  for x in (DATA.inputs[0], OTHER)]  # fmt: skip
        rates = [1.0 if key == "emb" else 1 / n for key in w]
        entries.append(
            sum(r * float((a * b).sum()) for r, a, b in zip(rates, *slopes, strict=True))
        )
    finite = Estimate(float(np.mean(entries)), float(np.std(entries, ddof=1)) / 12**0.5,
                      Method.FINITE, replicates=12)  # fmt: skip
    agree(float(kernel.ntk[0, 1]), finite, rounding=8 / n + 5 * kernel.error)


@pytest.mark.parametrize(
    ("name", "first", "second", "still"),
    [
        ("down", ("0", "any", "1", "1"), ("0", "1", "1", "1"), "down"),
        ("up", ("0", "1", "1", "1"), ("0", "1", "1", "1"), "up"),
        ("tied", ("0", "1", "1"), ("0", "1", "1"), "w"),
        ("adapter", ("0", "1", "any", "1", "1"), ("0", "1", "1", "1", "1"), "b"),
    ],
)
def test_rates_before_and_after_what_starts_at_0_has_moved(
    name: str, first: tuple[str, ...], second: tuple[str, ...], still: str
) -> None:
    net = tp.network(body, init=OWN, block=CASES[name][0])
    found = tp.solve(net, "own", steps=2, optimizer="adam", verify=False)
    assert (found.steps[0].c, found.steps[1].c) == (first, second)
    assert [own.name for own in found.stored if own.b == "oo"] == [still]
    assert any("0 at any rate" in note for note in found.notes) == ("any" in first)


def test_frozen_weights_are_left_out() -> None:
    net = tp.network(body, init=OWN, block=adapter)
    frozen = {name: {"lr": 0} for name in ("emb", "w")}
    found = tp.solve(net, "own", steps=2, optimizer="adam", groups=frozen, verify=False)
    assert found.names == ("a", "b", "read")
    assert [step.c for step in found.steps] == [("any", "1", "1"), ("1", "1", "1")]
    assert "the weights of emb, w are not trained" in found.notes
    of_layers = tp.solve(tp.MLP(2, "tanh"), "mup", steps=1, groups={"2": {"lr": 0}}, verify=False)
    assert (of_layers.names, of_layers.steps[0].c) == (("1", "3"), ("-1", "-1"))


def test_weights_of_which_none_is_trained_have_no_rates() -> None:
    with pytest.raises(tp.errors.UsageError, match="weights that are trained"):
        tp.solve(tp.MLP(2, "tanh"), "mup", steps=1, groups={k: {"lr": 0} for k in "123"})


def test_tied_weights_have_rates() -> None:
    @tp.network
    def net(t: Any, x: Any) -> Any:
        table = t.linear(t.n, "in", name="table")
        return table.tied(tp.tanh(t.linear(t.n, t.n, name="w")(table(x))))

    assert tp.solve(net, "mup", steps=1, optimizer="adam", verify=False).steps[0].c == ("0", "1/2")
    found = tp.solve(net, "mup", steps=1, optimizer="adam", verify=False, multipliers=True)
    assert found.closed == (("a[table]", "0"), ("a[w]", "1/2"))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("table", ["mup", "ntk"])
def test_blocks_that_are_summed_over_an_axis_their_vector_lacks(optimizer: str, table: str) -> None:
    """What the map sums itself is the sum that is written."""

    def net(t: Any, x: Any, inside: bool = True) -> Any:
        def summed(out: Any, into: Any, name: str, x: Any) -> Any:
            over = {"over": "k"} if inside else {}
            found = t.linear(out, into, axes={"k": 2}, name=name, **over)(x)
            return found if inside else t.sum(found, "k")

        h = tp.relu(summed(t.n, "in", "emb", x))
        return t.linear(t.outputs, t.n, name="read")(tp.relu(summed(t.n, t.n, "w", h)))

    one, other = (
        (tp.check(own, table, steps=1, optimizer=optimizer, verify=False).verdict,
         tp.solve(own, table, steps=1, optimizer=optimizer, verify=False).steps[0].c)
        for own in (tp.network(net, inside=inside) for inside in (True, False))
    )  # fmt: skip
    assert one == other
    rows = [
        {row.name: row.second_moment.value for row in tp.limit(
            tp.train(tp.network(net, inside=inside), "mup", DATA, steps=1, watch=("dW_x",),
                     optimizer=optimizer), samples=2**12, seed=0).table.vectors}
        for inside in (True, False)
    ]  # fmt: skip
    for name, value in rows[1].items():  # of one summand, both of which move alike
        assert rows[0][name] == pytest.approx(4 * value, rel=0.02)
