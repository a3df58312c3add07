"""Blocks of maps, their columns, names of parameters, and noise."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from twins import Twins

import tpcalc as tp
from tpcalc.networks.network import written

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def test_a_block_of_maps_meets_a_block_by_its_axes() -> None:
    """Each token has weights of its own, and a bias; the readout sums over tokens."""

    def net(t: Any, x: Any) -> Any:
        own = t.linear(t.n, "in", bias=True, axes={"p": 3}, name="u")
        deep = t.linear(t.n, t.n, axes={"k": 2}, over="k", bias=True, name="w")
        read = t.linear(t.outputs, t.n, bias=True, axes={"p": 3}, over="p", name="v")
        h = tp.tanh(own(x))
        return read(tp.tanh(deep(t.stack([h, tp.relu(h)], "k"))))

    def twin(p: Any, x: Any) -> Any:
        h = torch.tanh(torch.einsum("pi,pin->pn", x, p["u"]) + p["u.bias"])
        w = p["w"]
        h = torch.tanh(h @ w[0].T + torch.relu(h) @ w[1].T + p["w.bias"])
        return torch.einsum("kpn,pn->k", p["v"], h) + p["v.bias"]

    twins = Twins(tp.network(net, axes={"p": 3}), twin, 6, outputs=2)
    twins.check_gradients()


def test_several_outputs_at_several_places_are_ordered_by_place() -> None:
    """Targets come token by token; the loss of a token is that of its own outputs."""

    class Net(tp.Network):
        axes: ClassVar[dict[str, int]] = {"p": 2}

        def __init__(self, t: Any) -> None:
            self.u, self.v = t.linear(t.n, "in"), t.linear(t.outputs, t.n)

        def forward(self, x: Any) -> Any:
            return self.v(tp.tanh(self.u(x)))

    program = written(tp.network(Net), 4, 3)
    assert program.types[program.ref("f")].axes == (("p", 2), ("out", 3))

    def twin(p: Any, x: Any) -> Any:
        return torch.tanh(x @ p["u"]) @ p["v"].T

    Twins(Net, twin, 4, outputs=3).check_gradients()


def test_vectors_that_a_class_keeps_have_the_names_of_their_places() -> None:
    class Net(tp.Network):
        def __init__(self, t: Any) -> None:
            self.u, self.v = t.linear(t.n, "in", bias=True), t.linear(t.outputs, t.n)
            self.norms = [tp.layers.LayerNorm(t, eps=1), tp.layers.RMSNorm(t)]
            self.shift = t.parameter()

        def forward(self, x: Any) -> Any:
            h = self.norms[1](tp.tanh(self.norms[0](self.u(x))))
            return self.v(h + self.shift.vector())

    families = written(tp.network(Net), 2, 1).families
    assert set(families) == {
        "u", "u.bias", "v", "norms.0.gain", "norms.0.bias", "norms.1.gain", "shift"
    }  # fmt: skip


def test_noise_is_no_parameter_and_is_written_as_what_it_is() -> None:
    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u")(x)
        return t.linear(t.outputs, t.n, name="v")(h * (1 + t.noise("m")))

    assert [mark.label for mark in net.marks] == ["u", "v"]
    program = written(net, 2, 1)
    assert tp.parse(str(program)) == program
    assert " noise 1" in str(program)


@pytest.mark.parametrize("source", ["class", "function"])
def test_kernels_take_what_writes_a_network(source: str) -> None:
    class Net(tp.Network):
        def __init__(self, t: Any) -> None:
            self.u, self.v = t.linear(t.n, "in"), t.linear(t.outputs, t.n)

        def forward(self, x: Any) -> Any:
            return self.v(tp.relu(self.u(x)))

    def net(t: Any, x: Any, factor: int = 1) -> Any:
        return t.linear(t.outputs, t.n)(factor * tp.relu(t.linear(t.n, "in")(x)))

    found = tp.kernel(Net if source == "class" else net, [[1.0, 1.0], [1.0, -1.0]])
    wanted = tp.kernel(tp.MLP(1, "relu"), [[1.0, 1.0], [1.0, -1.0]])
    assert found.nngp == pytest.approx(wanted.nngp)
    assert found.ntk == pytest.approx(wanted.ntk)


def test_a_program_with_parameters_of_its_own_is_no_network() -> None:
    @tp.program
    def program(t: Any, factor: int = 2) -> None:
        t.output("f", tp.n**0.5 * factor * t.inner(t.gaussian("v"), tp.relu(t.gaussian("u"))))

    found = tp.kernel(program).nngp
    assert found is not None
    assert found.item() == pytest.approx(2)
