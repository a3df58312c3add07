"""Hand-made answers about the nonlinearity coefficient: without and with networks beside it."""

from __future__ import annotations

from dataclasses import replace

from tpcalc.results import (
    Estimate,
    LayerRow,
    MeasuredRow,
    MeasuredValue,
    Method,
    Nonlinearity,
    PathRow,
    Provenance,
)

__all__ = ["MEASURED", "NONLINEARITY"]


def exact(value: float) -> Estimate:
    return Estimate(value, 0.0, Method.EXACT)


def found(value: float, error: float, method: Method = Method.QUADRATURE) -> Estimate:
    return Estimate(value, error, method)


LAYERS = (
    LayerRow(0, "input", (), exact(1), exact(0), exact(1), exact(0), exact(1), None, exact(1)),
    LayerRow(
        1, "dense", (0,), exact(2), exact(0), exact(2), exact(0.693), exact(1), None, exact(1)
    ),
    LayerRow(
        *(2, "relu", (1,), exact(1), found(0.3183099, 1e-12), found(0.6816901, 1e-12)),
        *(exact(0.0), found(1.2111739, 1e-3), found(1.2111739, 1e-12), found(1.2111739, 1e-12)),
    ),
    LayerRow(
        *(3, "addition", (1, 2), exact(3), exact(0.3), exact(2.7), exact(1500.0)),
        *(exact(1.054), None, found(1.1, 1e-12)),
    ),
)
NONLINEARITY = Nonlinearity(
    model="two layers",
    text="h0 = input(1, 0)\nh1 = dense(h0, 2)\nh2 = relu(h1)\nh3 = 1*h1 + 1*h2",
    route="recursion",
    nlc=found(1.1, 1e-12),
    layers=LAYERS,
    paths=(PathRow((0, 1, 2, 3), 0.75, 1.4669), PathRow((0, 1, 3), 0.25, 1.0)),
    stability="unstable",
    amplification=32.0,
    conditions=("layer 2 (relu): the activation has kinks (condition 22.2)",),
    guidelines=(("1 <= NLC <= 5 (it is 1.1)", True), ("layers of order one (q to 3)", False)),
    measured=(),
    seeds=0,
    notes=("Gaussian instability: deviations grow by up to 32.",),
    provenance=Provenance("0.1.0", "ab12cd34", 0, (), (), 0.25),
)


def value(number: float, limit: Estimate) -> MeasuredValue:
    return MeasuredValue(found(number, 0.01, Method.FINITE), 0.02, limit)


def row(width: int, layer: LayerRow, off: float) -> MeasuredRow:
    one = exact(1)
    return MeasuredRow(
        width,
        layer.index,
        (
            ("LSCALE", value(layer.square.value**0.5 * off, exact(layer.square.value**0.5))),
            ("JACF", value(off, one)),
            ("LBIAS", value(layer.bias.value * off, layer.bias)),
            ("NLC", value(layer.total.value * off, layer.total)),
            ("NKURT", value(off - 1, exact(0))),
            ("LCV", value(0.0312, exact(0))),
        ),
    )


MEASURED = replace(
    NONLINEARITY,
    measured=tuple(
        row(width, layer, off) for width, off in ((128, 1.1), (512, 1.01)) for layer in LAYERS
    ),
    seeds=4,
)
