"""What layers refuse, in one line that says where and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tpcalc as tp
from tpcalc.errors import TpcalcError

L = tp.layers
Make = Callable[[Any], Callable[[Any], Any]]
REFUSED: dict[str, Make] = {
    "the stride of Conv is 0": lambda t: L.Conv(t, t.n, t.n, stride=0),
    "the size of Conv is (3, 3)": lambda t: L.Conv(t, t.n, t.n, size=(3, 3)),
    "the padding of Conv is 'same'": lambda t: L.Conv(t, t.n, t.n, padding="same"),
    "the axes of Conv are ()": lambda t: L.Conv(t, t.n, t.n, ()),
    "one is there twice": lambda t: L.Conv(t, t.n, t.n, ("p", "p")),
    "the variance of Conv is 0": lambda t: L.Conv(t, t.n, t.n, variance=0),
    "a window of 4 cells does not fit along 'p', which has 3": lambda t: L.Conv(
        t, t.n, t.n, size=4, padding="none"
    ),
    "runs along 'y', an axis that a vector does not have": lambda t: L.Conv(t, t.n, t.n, "y"),
    "Conv is made with the text 'n'": lambda t: L.Conv(t.n, t.n, t.n),
    "would be a second axis 'k'": lambda t: (
        lambda h: L.windows(t.stack([h, h], "k"), "p", 2)  # type: ignore[type-var]
    ),
    "the number of heads of Attention is 0": lambda t: L.Attention(t, 0),
    "the number of heads of Attention is 1.5": lambda t: L.Attention(t, 1.5),
    "the scale of Attention is 'd'": lambda t: L.Attention(t, scale="d"),
    "Attention runs along 'q'": lambda t: L.Attention(t, axis="q"),
    "with an axis 'head' of its own": lambda t: (
        lambda h: L.Attention(t, 2)(t.stack([h, h], "head"))
    ),
    "attention is taken of vectors": lambda t: (
        lambda h: L.attention(*[t.inner(h, h)] * 3)  # type: ignore[list-item]
    ),
    "a causal softmax of 3 rows of 2 cells": lambda t: (
        lambda h: L.causal_softmax(t.inner(h, t.stack([t.mean(h) * h] * 2, "q")), "p", "q")
    ),
    "max_pool runs along 'q'": lambda t: lambda h: L.max_pool(h, "q"),
    "a window of 5 cells does not fit": lambda t: lambda h: L.average_pool(h, size=5),
    "average_pool is applied to the number 3": lambda t: lambda h: L.average_pool(3),
    "the axis 'p' has 3 cells": lambda t: lambda h: h + L.max_pool(h, size=2),
    "batch norm runs along 'b'": lambda t: L.BatchNorm(t),
    "which has one cell": lambda t: lambda h: L.batch_norm(t.stack([h], "b")),
    "batch norm is taken of vectors": lambda t: lambda h: L.batch_norm(t.inner(h, h), "p"),
    "layer norm is taken of a vector": lambda t: lambda h: L.layer_norm(t.inner(h, h)),
    "the rate of Dropout is 1.": lambda t: L.Dropout(t, 1),
    "the law of Dropout is 'cauchy'": lambda t: L.Dropout(t, 0.5, "cauchy"),
    "Dropout is applied to a scalar": lambda t: lambda h: L.Dropout(t)(t.inner(h, h)),
    "serial is made of no layers": lambda t: L.serial(),
    "a layer of serial is the number 3": lambda t: L.serial(3),
    "a layer of residual is the text": lambda t: L.residual(tp.relu, "x"),
    "the activation of Dense is the number 3": lambda t: L.Dense(t, t.n, t.n, 3),
    "no activation called 'rleu'": lambda t: L.Dense(t, t.n, t.n, "rleu"),
    "the side out of a map is 'm'": lambda t: L.GLU(t, "m", t.n),
    "Positions runs along 'q'": lambda t: L.Positions(t, "q"),
    "Embedding runs along 'q'": lambda t: L.Embedding(t, "q"),
    "are asked for before it is applied": lambda t: L.Embedding(t).readout,
    "Embedding.readout is applied to a scalar": lambda t: (
        lambda h: L.Embedding(t).readout(t.inner(h, h))
    ),
    "the reset of GRU is 'middle'": lambda t: L.GRU(t, t.n, "middle"),
    "a recurrent cell gives the number 3": lambda t: lambda h: L.recur(lambda x, s: 3, h),
    "the state of an LSTM is a pair": lambda t: lambda h: L.LSTM(t, t.n)(h, h),
    "applied to a vector without this axis": lambda t: lambda h: L.recur(L.GRU(t, "in"), h),
    "not an empty one": lambda t: lambda h: t.stack([], "q"),
    "has this axis already": lambda t: lambda h: t.stack([h, h], "p"),
    "a vector and a scalar are not": lambda t: lambda h: t.stack([h, t.mean(h)], "q"),
    "scalars, not a vector": lambda t: lambda h: t.stack(h, "q"),
    "an axis cannot be called '1'": lambda t: lambda h: t.stack([h], "1"),
    "the axes of 'a constant' are a list of names": lambda t: lambda h: t.constant([1, 2], "p") * h,
    "has 0 cells": lambda t: t.linear(t.n, t.n, axes={"k": 0}),
    "summed over 'p', which its axes do not have": lambda t: t.linear(
        t.n, t.n, axes={"k": 2}, over="p"
    ),
    "has no transpose that is a map": lambda t: (
        lambda h: t.linear(t.n, t.n, axes={"k": 2}, over="k").T(h)
    ),
    "a map between widths has no columns": lambda t: lambda h: t.linear(t.n, t.n).columns,
    "two places of different dimensions": lambda t: (
        lambda h: [norm := L.LayerNorm(t), norm(norm(h)), norm(t.linear(t.dim("m", 2), t.n)(h))][1]
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_layer_that_is_none(message: str) -> None:
    @tp.network(axes={"p": 3})
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in")(x)
        return t.linear(t.outputs, t.n)(REFUSED[message](t)(h))

    with pytest.raises(TpcalcError) as found:
        print(net.marks)
    assert message in str(found.value)
    assert "test_errors.py" in str(found.value)


def test_heads_that_do_not_divide_the_width_are_refused_where_it_is_known() -> None:
    @tp.network(axes={"p": 2})
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in")(x)
        return t.linear(t.outputs, t.n)(L.average_pool(L.Attention(t, 3)(h)))

    program = tp.train(net, "mup", tp.Samples(((1.0, 2.0),), ((1.0,),)), steps=0, watch=())
    with pytest.raises(TpcalcError, match="multiples of 3"):
        tp.simulate(program, [10], seeds=1)
