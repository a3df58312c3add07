"""Ways to design networks, by guidelines: with and without each, and table 8.1 derived."""

from __future__ import annotations

from typing import Any

import pytest

import tpcalc as tp
from tpcalc.errors import UsageError

s, p = tp.signal, tp.signal.practice
HE = s.Design("relu", 2)
NAMES = {"gaussian": "gaussian:1/2"}


def tau(name: str, debias: bool = False) -> Any:
    return s.activations.calibrated(NAMES.get(name, name), debias=debias)


BASES = {
    "relu": s.mlp(12, HE),
    "softplus": s.mlp(12, s.Design(tau("softplus"))),
    "wide tanh": s.mlp(15, s.Design("tanh", 3)),
    "small relu": s.mlp(12, s.Design("relu", 0.5)),
    "square": s.mlp(6, s.Design("square", 1 / 3)),
    "gaussian": s.mlp(12, s.Design(tau("gaussian", True))),
    "linear": s.mlp(12, s.Design(lambda z: z + 1e-3 * tp.tanh(z))),  # all but linear
}
NLC, GAUSSIAN, SCALE, TRAINING, BIAS, ORTHOGONAL = "G1", "G2", "G3", "G4", "G5", "G7"


def ablated(bases: tuple[str, ...], way: Any) -> dict[str, str]:
    networks = {name: BASES[name] for name in bases}
    return {row.guideline: row.effect for row in p.ablation(networks, {"way": way})}


def by(rule: Any) -> Any:
    return lambda network: p.rewritten(network, rule)


# Columns of table 8.1, for ways of which the thesis says yes (improves) or can harm.
TABLE = {
    "variances": (by(p.unit_weights), ("small relu", "relu"), {SCALE: "improves"}),
    "activations": (by(p.swap("relu")), ("linear",), {NLC: "improves"}),
    "relu": (by(p.swap(tau("relu"))), ("wide tanh",), {TRAINING: "improves"}),
    "softplus": (by(p.swap(tau("softplus"))), ("gaussian", "square"),
                 {NLC: "improves", GAUSSIAN: "improves"}),
    "selu": (by(p.swap(tau("selu"))), ("gaussian", "relu", "square"),
             {NLC: "improves", BIAS: "improves", GAUSSIAN: "improves"}),
    "tanh": (by(p.swap(tau("tanh"))), ("relu", "square"), {BIAS: "improves", GAUSSIAN: "improves"}),
    "batch norm": (by(p.norm_first("batch")), ("relu", "small relu", "wide tanh"),
                   {BIAS: "improves", SCALE: "improves", TRAINING: "improves", NLC: "both"}),
    "layer norm": (by(p.norm_first("layer")), ("small relu", "wide tanh", "square"),
                   {SCALE: "improves", TRAINING: "improves", GAUSSIAN: "improves"}),
    "skips": (lambda net: p.skipping(net, 1, 1), ("softplus", "relu"),
              {BIAS: "improves", SCALE: "harms"}),
    "orthogonal": (by(p.orthogonal), ("relu", "wide tanh"),
                   {ORTHOGONAL: "improves", NLC: "none", BIAS: "none", SCALE: "none"}),
    "linear": (by(p.swap(lambda z: z)), ("square",), {GAUSSIAN: "improves"}),
    "no bias": (by(p.retune(s.activations.debiased)), ("relu", "softplus"), {BIAS: "improves"}),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_S4b_34_table_of_ways_and_guidelines(name: str) -> None:
    way, bases, wanted = TABLE[name]
    found = ablated(bases, way)
    assert {key: found[key] for key in wanted} == wanted


def test_S4b_34_nlnorm_is_for_coefficient_bias_and_scale() -> None:
    """Activations of mean 0 and mean square 1 beside a line, for a coefficient of 1.05 each."""
    mixed = s.activations.calibrated(lambda z: tp.relu(z) + 0.709085 * z, debias=True)
    found = ablated(("relu", "softplus", "gaussian"), by(p.swap(mixed)))
    assert {key: found[key] for key in (NLC, BIAS)} == {NLC: "improves", BIAS: "improves"}
    scale = {
        row.guideline: row.effect
        for row in p.ablation(
            {"small": BASES["small relu"]},
            {"nlnorm": lambda net: p.rewritten(p.rewritten(net, p.swap(mixed)), p.unit_weights)},
        )
    }
    assert scale[SCALE] == "improves"


def test_S4b_34_depth_makes_networks_nonlinear() -> None:
    shallow = {"selu": s.mlp(1, s.Design(tau("gaussian", True), weights=0.01))}
    deeper = {"deep": lambda net: s.mlp(10, s.Design(tau("gaussian", True)))}
    (row, *_) = p.ablation(shallow, deeper)
    assert row.after[0].value > row.before[0].value
    with pytest.raises(UsageError, match="no networks"):
        p.ablation({}, {})


def test_S4b_29_norm_layers() -> None:
    """Without, with layer norm and with batch norm: what each metric becomes."""
    plain = s.mlp(10, s.Design("relu", 3, 0.1))
    rows = {
        name: p.layer_limits(p.rewritten(plain, p.norm_first(name)))
        for name in ("none", "layer", "batch")
    }
    acts = {name: [r for r in found if r.operation == "relu"] for name, found in rows.items()}
    assert acts["none"][-1].square.value > 20  # lengths grow
    for name in ("layer", "batch"):
        assert [row.square.value for row in acts[name]] == pytest.approx([0.5] * 10)
    assert rows["batch"][-1].total.value > rows["layer"][-1].total.value  # means are taken out
    assert rows["batch"][-1].bias.value < rows["layer"][-1].bias.value
    for name in ("layer", "batch"):  # weights may grow
        norm = p.norm_first(name)
        grown = p.rewritten(p.rewritten(s.mlp(10, HE), norm), p.scale_weights(10))
        assert s.nlc(grown).value == pytest.approx(s.nlc(p.rewritten(s.mlp(10, HE), norm)).value)
    assert s.nlc(p.rewritten(s.mlp(5, s.Design("tanh")), p.scale_weights(10))).value > 2
