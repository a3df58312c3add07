"""How the parameters of modules start: laws, means and deviations as powers of the width."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import torch
from modules import ROWS, Row
from torch import Tensor, nn

from tpcalc.errors import StudyError
from tpcalc.torch.family import family
from tpcalc.torch.inits import Init

pytestmark = pytest.mark.torch
HALF = Fraction(1, 2)
WIDE = 256


def started(make: Callable[[int], nn.Module], **how: Any) -> dict[str, Init]:
    """How the parameters of a family start, by name."""
    return {one.name: one.init for one in family(make, **how).parameters}


def one(draw: Callable[[int], Tensor], **how: Any) -> Init:
    """How the one parameter of a module starts."""
    return started(lambda n: nn.ParameterList([draw(n)]), **how)["0"]


def powers(init: Init) -> tuple[Any, ...]:
    """The law of an init, with its deviation as a number and a power."""
    return init.law, pytest.approx(float(init.std.number)), init.std.power


def conv(n: int) -> nn.Module:
    return nn.Conv2d(n, 2 * n, 3)


THIRD = 3**-0.5
# By module the deviation of all parameters, as a number and a power. A map of fan-in f has uniform
# entries in (-1, 1) / sqrt(f), whose deviation is 1 / sqrt(3 f).
DEFAULTS: dict[str, tuple[Callable[[int], nn.Module], float, Fraction]] = {
    "linear": (lambda n: nn.Linear(n, 3 * n), THIRD, -HALF),
    "linear from few": (lambda n: nn.Linear(12, n), 1 / 6, 0 * HALF),
    "convolution": (conv, THIRD / 3, -HALF),
    "recurrent": (lambda n: nn.LSTM(n, n, num_layers=2), THIRD, -HALF),
    "recurrent cell": (lambda n: nn.GRUCell(5, 4 * n), THIRD / 2, -HALF),
}


@pytest.mark.parametrize(("make", "number", "power"), DEFAULTS.values(), ids=list(DEFAULTS))
def test_defaults_of_torch(
    make: Callable[[int], nn.Module], number: float, power: Fraction
) -> None:
    for init in started(make).values():
        assert powers(init) == ("uniform", number, power)
        assert (init.how, init.mean.number) == ("read", 0)


def test_defaults_of_attention_and_embeddings() -> None:
    found = started(lambda n: nn.MultiheadAttention(n, 4))
    # Xavier on (3n, n): uniform within sqrt(6 / 4n), of deviation sqrt(2 / 4n).
    assert powers(found["in_proj_weight"]) == ("uniform", HALF**0.5, -HALF)
    assert powers(found["out_proj.weight"]) == ("uniform", THIRD, -HALF)
    assert found["in_proj_bias"].text == found["out_proj.bias"].text == "zero"
    assert started(lambda n: nn.Embedding(9, n))["weight"].text == "normal, std 1"


@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.BatchNorm1d], ids=["layer", "batch"])
def test_gains_of_norms_are_constant(norm: type[nn.Module]) -> None:
    found = started(norm)
    assert (found["weight"].text, found["bias"].text) == ("constant 1", "zero")


def test_layers_that_are_copied_start_alike() -> None:
    layer = nn.TransformerEncoderLayer
    made = family(
        lambda n: nn.TransformerEncoder(layer(n, 4, 2 * n), 2, enable_nested_tensor=False)
    )
    found = {name.name: name for name in made.parameters}
    assert powers(found["layers.1.linear2.weight"].init) == ("uniform", THIRD / 2**0.5, -HALF)
    assert any(
        "layers.1.linear2.weight (of layers.0.linear2.weight)" in note for note in made.notes
    )
    assert found["layers.1.linear2.weight"].line == found["layers.0.linear2.weight"].line


def gpt_two(n: int) -> nn.Module:
    """The loops over modules and names that follow on the constructor."""
    net = nn.Sequential(nn.Embedding(11, n), nn.Linear(n, 4 * n), nn.Linear(4 * n, n))

    def init(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)

    net.apply(init)
    for name, parameter in net.named_parameters():
        if name == "2.weight":
            nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * 12))
    return net


def test_the_last_write_counts() -> None:
    found = started(gpt_two)
    assert powers(found["1.weight"]) == ("normal", 0.02, 0)
    assert powers(found["2.weight"]) == ("normal", 0.02 / 24**0.5, 0)
    assert found["1.bias"].law == "zero"
    start = gpt_two.__code__.co_firstlineno
    assert found["0.weight"].line == f"test_inits.py:{start + 6}"
    assert found["2.weight"].line == f"test_inits.py:{start + 13}"


def scaled_in_place(n: int) -> Tensor:
    w = torch.empty(n, n).uniform_(-1, 1)
    w *= 3
    w.data = w.data / n
    return w.add_(2 / n)


def by_inverse_error(n: int) -> Tensor:
    """Normal numbers of deviation 0.1 between -0.2 and 0.2, as older versions draw them."""
    edge = math.erf(2 / math.sqrt(2))
    w = torch.empty(n, n).uniform_(-edge, edge)
    return w.erfinv_().mul_(0.1 * math.sqrt(2)).add_(0.0).clamp_(-0.2, 0.2)


# Phi(2) - Phi(-2), and the variance of a normal number between -2 and 2.
INSIDE = math.erf(2**0.5)
CUT = math.sqrt(1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / INSIDE)
CHAINS: dict[str, tuple[Callable[[int], Tensor], str, float, Fraction]] = {
    "normal over a root": (lambda n: torch.randn(n, n) / n**0.5, "normal", 1, -HALF),
    "power before": (lambda n: n**-0.5 * torch.randn(n), "normal", 1, -HALF),
    "a tensor of one number": (
        lambda n: torch.randn(n) * torch.tensor(0.5),
        "normal",
        0.5,
        0 * HALF,
    ),
    "uniform around 0": (lambda n: (torch.rand(n) - 0.5) * 2, "uniform", THIRD, 0 * HALF),
    "minus": (lambda n: 1 - torch.rand(n) * 3, "uniform", 3 / 12**0.5, 0 * HALF),
    "in place": (scaled_in_place, "uniform", 3 * THIRD, Fraction(-1)),
    "normal of two numbers": (lambda n: torch.normal(0.0, 2.0, (n,)), "normal", 2, 0 * HALF),
    "transposed": (lambda n: torch.randn(9, n).t().contiguous() / 3, "normal", 1 / 3, 0 * HALF),
    "xavier": (lambda n: nn.init.xavier_normal_(torch.empty(3 * n, n)), "normal", HALF**0.5, -HALF),
    "kaiming": (
        lambda n: nn.init.kaiming_uniform_(torch.empty(n, 8 * n), nonlinearity="relu"),
        "uniform",
        0.5,
        -HALF,
    ),
    "truncated": (
        lambda n: nn.init.trunc_normal_(torch.empty(n, n), std=0.1, a=-0.2, b=0.2),
        "truncated normal",
        0.1 * CUT,
        0 * HALF,
    ),
    "truncated far out": (
        lambda n: nn.init.trunc_normal_(torch.empty(n, n), std=n**-0.5),
        "truncated normal",
        1,
        -HALF,
    ),
    "truncated by steps": (by_inverse_error, "truncated normal", 0.1 * CUT, 0 * HALF),
    "orthogonal": (lambda n: nn.init.orthogonal_(torch.empty(n, n)), "orthogonal", 1, -HALF),
    "orthogonal, wide": (
        lambda n: nn.init.orthogonal_(torch.empty(n, 4 * n), gain=3),
        "orthogonal",
        1.5,
        -HALF,
    ),
    "joined": (
        lambda n: torch.cat([torch.randn(n, n), torch.randn(n, n)]) / n**0.5,
        "random",
        1,
        -HALF,
    ),
    "identity": (lambda n: nn.init.eye_(torch.empty(n, n)), "identity", 1, -HALF),
    "ones": (lambda n: torch.ones(n) * 0.1, "constant", 0, 0 * HALF),
}


@pytest.mark.parametrize(("init", "law", "number", "power"), CHAINS.values(), ids=list(CHAINS))
def test_chains(init: Callable[[int], Tensor], law: str, number: float, power: Fraction) -> None:
    found = one(init)
    assert (found.law, found.std.power) == (law, power)
    loose = 0.02 if law == "random" else 1e-4
    assert float(found.std.number) == pytest.approx(number, rel=loose)


def test_a_mean_is_read_too() -> None:
    assert (found := one(scaled_in_place)).mean.text == "2 n^(-1)", found
    assert one(lambda n: torch.full((n,), -2.5)).text == "constant -5/2"
    identity = one(lambda n: nn.init.eye_(torch.empty(n, n))).mean
    assert (identity.number, identity.power) == (pytest.approx(1), -1)


def test_powers_that_show_at_large_widths_only() -> None:
    assert powers(one(lambda n: torch.randn(n, n) / (n + 7)))[2] == -1
    glorot = one(lambda n: torch.randn(n, n) * math.sqrt(2 / (n + 3 * n + 5)))
    assert (glorot.std.power, glorot.how) == (-HALF, "read")
    assert float(glorot.std.number) == pytest.approx(HALF**0.5, rel=1e-3)


def test_a_logarithm_is_refused_with_that_word() -> None:
    with pytest.raises(StudyError, match=r":\d+: the std of 0 .* logarithm of n.*Declare it"):
        one(lambda n: torch.randn(n, n) / math.log(n))


def test_without_large_widths_a_declaration_is_asked_for() -> None:
    def draws(n: int) -> Tensor:
        kept = [value for value in torch.randn(4).tolist() if value]  # no number of a fake tensor
        return torch.randn(n, len(kept)) / (n + 7)

    with pytest.raises(StudyError, match=r"fake tensors: .*Declare it: init=\{\"0\": "):
        one(draws)
    declared = one(draws, init={"0": "2 n^(-1)"})
    assert (declared.text, declared.how) == ("normal, std 2 n^(-1)", "declared")
    assert one(draws, init={"0": 0}).law == "zero"


def test_parts_that_are_written_apart() -> None:
    def forget(n: int) -> nn.Module:
        lstm = nn.LSTM(n, n)
        lstm.bias_hh_l0.data[n : 2 * n].fill_(1)
        return lstm

    made = family(forget)
    found = {name.name: name.init for name in made.parameters}["bias_hh_l0"]
    assert powers(found) == ("uniform", THIRD, -HALF)
    (note,) = made.notes
    assert "320 of 1280 entries of bias_hh_l0 start apart (constant 1; test_inits.py:" in note

    padded = family(lambda n: nn.Embedding(9, n, padding_idx=0))
    assert padded.parameters[0].init.text == "normal, std 1"
    assert "320 of 2880 entries of weight start apart (zero" in padded.notes[0]


def test_zeros_decide_only_where_the_rest_vanishes() -> None:
    def half(n: int) -> Tensor:
        gains = torch.zeros(n)
        gains[: n // 2] = 2.0
        return gains

    def diagonal(n: int) -> Tensor:
        matrix = torch.zeros(n, n)
        matrix.diagonal().fill_(1)
        return matrix

    assert one(half).text == "constant 2"
    assert one(diagonal).text == "zero"


def test_parts_that_are_written_alike_are_one() -> None:
    def chunks(n: int) -> Tensor:
        w = torch.empty(3 * n, n)
        for part in w.chunk(3):
            nn.init.xavier_uniform_(part)
        return w

    made = family(lambda n: nn.ParameterList([chunks(n)]))
    assert powers(made.parameters[0].init) == ("uniform", 1, -HALF)
    assert not made.notes


def test_what_is_computed_is_fitted() -> None:
    def make(n: int) -> nn.Module:
        net = nn.Linear(n, n, bias=False)
        net.gain = nn.Parameter(net.weight.detach().norm(dim=1))
        net.square = nn.Parameter(torch.randn(n, n) ** 2 / n)
        return net

    found = started(make)
    gain, square = found["gain"], found["square"]
    assert (gain.how, gain.law, gain.mean.power, gain.std.power) == ("fitted", "random", 0, -HALF)
    assert float(gain.mean.number) == pytest.approx(THIRD, rel=0.01)
    assert (square.how, square.mean.power, square.std.power) == ("fitted", -1, -1)
    assert float(square.std.number) == pytest.approx(2**0.5, rel=0.02)


def test_writes_that_torch_does_not_see_are_noticed() -> None:
    def make(n: int) -> nn.Module:
        net = nn.Linear(n, n)
        net.weight.detach().numpy()[:] *= n**-0.5
        net.bias.detach().numpy()[:] = 2.0
        return net

    found = started(make)
    assert (found["weight"].how, found["weight"].std.power) == ("fitted", -1)
    assert found["bias"].text == "constant 2"


def test_numbers_that_no_seed_changes() -> None:
    rates = one(lambda n: torch.arange(1.0, 17.0).log().repeat(n, 1))
    expected = torch.arange(1.0, 17.0).log().double()
    assert (rates.law, rates.how, rates.std.power) == ("fixed", "read", 0)
    assert float(rates.std.number) == pytest.approx(float(expected.std(correction=0)))
    assert float(rates.mean.number) == pytest.approx(float(expected.mean()))


UNKNOWN: dict[str, tuple[Callable[[int], Tensor], str]] = {
    "three entries": (lambda n: torch.rand(3) ** 2 * n**-0.5, "not identified from 3 entries"),
    "equal rows": (lambda n: torch.randn(n).repeat(n, 1), "no independent draw"),
    "one number": (lambda n: torch.randn(1) * torch.ones(n), "no independent draw"),
    "symmetric": (lambda n: (w := torch.randn(n, n)) + w.t(), "no independent draw"),
    "low rank": (lambda n: torch.randn(n, 2) @ torch.randn(2, n), "no independent draw"),
    "no power": (lambda n: torch.rand(n, n) ** 2 * n**-0.37, "no multiple of 1/4"),
    "never written": (lambda n: torch.empty(n, n), "never written"),
}


@pytest.mark.parametrize(("init", "words"), UNKNOWN.values(), ids=list(UNKNOWN))
def test_what_is_not_known_asks_for_a_declaration(
    init: Callable[[int], Tensor], words: str
) -> None:
    def make(n: int) -> nn.Module:
        return nn.ParameterList([init(n), torch.ones(n)])

    with pytest.raises(StudyError, match=rf"test_inits.py:\d+: 0.*{words}.* Declare it: init="):
        family(make).parameters[0].init  # noqa: B018
    assert started(make, init={"0": "0.1 n^(-1)"})["0"].text == "normal, std 1/10 n^(-1)"


def bias_apart(n: int) -> nn.Module:
    """Half of its inits are copies or rescaled."""
    net = nn.Sequential(nn.Linear(7, n), nn.Linear(n, n), nn.Linear(n, 3))
    net[1].weight.data.mul_(math.sqrt(3))
    nn.init.trunc_normal_(net[2].weight, std=1 / n, a=-1 / n, b=2 / n)
    net.append(copy.deepcopy(net[2]))
    return net


@pytest.mark.parametrize(
    "make",
    [bias_apart, conv, gpt_two, *(row.make for row in ROWS[:6])],
    ids=lambda make: getattr(make, "__name__", "make"),
)
def test_what_is_read_agrees_with_draws(make: Callable[[int], nn.Module]) -> None:
    torch.manual_seed(5)
    module = make(WIDE)
    for parameter in family(make).parameters:
        init, drawn = parameter.init, module.get_parameter(parameter.name).detach().double()
        mean, std = init.mean.at(WIDE), init.std.at(WIDE)
        root = drawn.numel() ** 0.5
        assert abs(float(drawn.mean()) - mean) <= 5 * std / root + 1e-6 * abs(mean)
        spread = float((drawn - mean).square().mean().sqrt())
        assert abs(spread - std) <= 5 * std / (2**0.5 * root) + 1e-6 * abs(mean)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_init_of_the_modules_is_found(row: Row) -> None:
    for parameter in family(row.make).parameters:
        assert parameter.init.how in ("read", "fitted")
        assert parameter.line
