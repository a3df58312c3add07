"""Networks that are written line by line: the numbers that their layers had as layers.

The numbers of ``lines.json`` were computed when texts, designs and macro-layers were graphs of
layers, before they became networks that are read.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pytest

import tpcalc as tp
from tpcalc.errors import StudyError, TraceError, UsageError
from tpcalc.signal import Design, Input, drawn_macro_layers, layers, nlc, propagate

Numbers = tuple[float, float, float, float]  # q, q - c and log g of the last layer, NLC
TABLE = json.loads((Path(__file__).parent / "lines.json").read_text(encoding="utf-8"))


def agrees(net: Any, numbers: Numbers) -> None:
    q, v, g, coefficient = numbers
    last = propagate(net)[-1]
    assert last.square.value == pytest.approx(q, rel=1e-12)
    assert last.gap.value == pytest.approx(v, rel=1e-12)
    assert last.log_gradient.value == pytest.approx(g, abs=1e-12, rel=1e-12)
    assert nlc(net).value == pytest.approx(coefficient, rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "act", "norm", "family", "rank", "bias", "batch", "numbers"), TABLE["designs"]
)
def test_designs_have_the_numbers_of_their_layers(
    kind: str, act: str, norm: Any, family: str, rank: Any, bias: Any, batch: Any, numbers: Numbers
) -> None:
    rank = Fraction(rank) if isinstance(rank, str) else rank
    design = Design(act, Fraction(3, 2), 0.1, norm, family, rank, bias, batch)
    start = Input(Fraction(5, 4), Fraction(1, 3))
    if kind == "mlp":
        agrees(tp.signal.mlp(3, design, start), numbers)
    else:
        agrees(tp.signal.resnet(3, design, start, Fraction(1, 2), -0.7), numbers)


@pytest.mark.parametrize(("seed", "batch", "numbers"), TABLE["macro_layers"][::2])
def test_macro_layers_have_the_numbers_of_their_layers(
    seed: int, batch: int | None, numbers: Numbers
) -> None:
    agrees(drawn_macro_layers(seed).network(batch), numbers)


@pytest.mark.parametrize(("name", "text", "numbers"), TABLE["texts"])
def test_texts_have_the_numbers_of_their_layers(
    name: str, text: list[str], numbers: Numbers
) -> None:
    net = tp.signal.parse_graph("\n".join(text))
    agrees(net, numbers)
    assert tp.signal.parse_graph(tp.signal.graph_text(net)) == net


# ----------------------------------------------------------------------------- as any other network


def test_a_text_with_a_readout_is_trained() -> None:
    net = tp.signal.parse_graph(
        "x = input()\na = dense(x, 2)\nb = relu(a)\nc = dense(b, outputs=1)"
    )
    found = tp.check(net, "mup", steps=1)
    assert found.verdict == "feature-learning"
    kernel = tp.kernel(net, [[1.0, 0.0], [0.6, 0.8]], kinds="nngp")
    wanted = tp.kernel(tp.MLP(1, "relu", weight_variance=2), [[1.0, 0.0], [0.6, 0.8]], kinds="nngp")
    assert kernel.nngp == pytest.approx(wanted.nngp)


def test_names_of_lines_are_names_of_vectors() -> None:
    net = tp.signal.parse_graph(
        "x = input(1, 1/4)\nup = dense(x, 2)\ncurve = tanh(up)\ndown = dense(curve)"
    )
    whole = nlc(net, "h[up]", "h[curve]").value * nlc(net, "h[curve]", "h[down]").value
    assert nlc(net, "h[up]").value == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("weights", [1, Fraction(3, 2), 0.1 + 0.2, 0.123456789])
def test_variances_come_back_to_the_last_digit(weights: Any) -> None:
    net = tp.signal.mlp(1, Design("relu", weights))
    operation = layers(net).layers[1].operation
    assert operation.variance == weights  # type: ignore[attr-defined]


class Batched(tp.Network):
    """Batch norm in blocks with skips."""

    axes: ClassVar[dict[str, int]] = {"b": 16}

    def __init__(self, t: Any) -> None:
        self.u, self.v = t.linear(t.n, "in"), t.linear(t.outputs, t.n)
        self.maps = [t.linear(t.n, t.n) for _ in range(3)]
        self.norms = [tp.layers.BatchNorm(t, "b") for _ in range(3)]

    def forward(self, x: Any) -> Any:
        h = self.u(x)
        for norm, w in zip(self.norms, self.maps, strict=True):
            h = h + w(tp.relu(norm(h)))
        return self.v(h)


def test_own_networks_with_batch_norm_in_every_question() -> None:
    design = tp.signal.resnet(3, Design("relu", norm="batch", batch=16))
    wanted = nlc(design).value
    assert nlc(Batched).value == pytest.approx(wanted, rel=1e-12)
    assert tp.signal.bandwidth(Batched).value == pytest.approx(wanted, rel=1e-12)
    assert tp.signal.path_nlc(Batched).value == pytest.approx(wanted, rel=1e-12)
    assert tp.signal.stability(Batched).label == tp.signal.stability(design).label
    assert tp.signal.nonlinearity(Batched).nlc.value == pytest.approx(wanted, rel=1e-12)


def norms(how: str) -> Any:
    """What a network does with its batch."""

    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u")(x)
        mean = Fraction(1, 8) * t.sum(h, "b")
        if how == "mean":
            h = h - mean
        elif how == "average":
            h = mean
        elif how == "sum":
            h = h + mean
        elif how == "cell":
            h = h.at(b=2)
        elif how == "size":
            h = h * (Fraction(1, 8) * t.sum(h * h, "b")) ** Fraction(-1, 2)
        elif how == "curved":
            h = tp.layers.batch_norm(tp.relu(h), "b")
        return t.linear(t.outputs, t.n)(tp.tanh(h))

    return tp.network(net, axes={"b": 8})


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("mean", "averages over the batch in other ways than batch norm does"),
        ("average", "averages over the batch in other ways than batch norm does"),
        ("sum", "averages over the batch in other ways than batch norm does"),
        ("size", "averages over the batch in other ways than batch norm does"),
        ("cell", "is 8 vectors, whose layers are not independent where they are joined otherwise"),
        ("curved", "it normalises over the batch what is not Gaussian"),
    ],
)
def test_other_uses_of_a_batch_are_refused(how: str, said: str) -> None:
    with pytest.raises(StudyError, match=said) as caught:
        nlc(norms(how))
    assert "test_lines.py:" in str(caught.value.where)


def test_batch_norm_in_other_spellings() -> None:
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", bias=True, factors=(3, 1))(x)
        mean = Fraction(1, 8) * t.sum(h, "b")
        size = (Fraction(1, 8) * t.sum((h - mean) ** 2, "b") + Fraction(1, 5)) ** Fraction(1, 2)
        return t.linear(t.outputs, t.n)(tp.tanh((h - mean) / size))

    text = "x = input()\na = dense(x, 9)\nb = bias(a, 1)\nc = batch_norm(b, batch=8, epsilon=1/5)"
    wanted = tp.signal.parse_graph(f"{text}\nd = tanh(c)\ne = dense(d)")
    found = propagate(tp.network(net, axes={"b": 8}))
    for one, other in zip(found, propagate(wanted), strict=True):
        assert one.square.value == pytest.approx(other.square.value, rel=1e-12)
        assert one.gap.value == pytest.approx(other.gap.value, rel=1e-12)
        assert one.log_gradient.value == pytest.approx(other.log_gradient.value, abs=1e-12)


def test_an_infinite_batch_is_for_the_recursion() -> None:
    text = "x = input()\na = dense(x)\nb = batch_norm(a)\nc = relu(b)\nd = dense(c, outputs=1)"
    net = tp.signal.parse_graph(text)
    assert nlc(net).value > 1
    with pytest.raises(StudyError, match=r"'b' of .* stands for infinitely many inputs"):
        tp.check(net, "mup", steps=1)
    with pytest.raises(StudyError, match="batches of the sizes"):
        tp.signal.parse_graph(f"{text[: text.index('d = ')]}d = batch_norm(a, batch=8)")


class Endless(Batched):
    """The same of an infinite batch."""

    infinite: ClassVar[tuple[str, ...]] = ("b",)


def test_own_networks_of_an_infinite_batch() -> None:
    wanted = nlc(tp.signal.resnet(3, Design("relu", norm="batch"))).value
    assert nlc(Endless).value == pytest.approx(wanted, rel=1e-12)
    with pytest.raises(StudyError, match=r"'b' of .* stands for infinitely many inputs"):
        tp.check(Endless, "mup", steps=1)


def test_a_network_without_a_readout_is_for_the_recursion() -> None:
    net = tp.signal.parse_graph("x = input()\na = dense(x)\nb = relu(a)")
    assert nlc(net).value > 1
    with pytest.raises(TraceError, match="the forward pass of Lines returns a vector"):
        tp.kernel(net, [[1.0, 0.0]])


def test_names_of_layers_say_what_took_their_place() -> None:
    for name in ("Dense", "LayerGraph", "chain", "SpanBias", "Activation"):
        with pytest.raises(AttributeError, match=f"tp.signal.{name} is gone.*Write "):
            getattr(tp.signal, name)
    with pytest.raises(AttributeError, match="no attribute 'Dens'"):
        getattr(tp.signal, "Dens")  # noqa: B009
    with pytest.raises(UsageError, match="is not written line by line"):
        tp.signal.graph_text(tp.MLP(2))  # type: ignore[arg-type]
