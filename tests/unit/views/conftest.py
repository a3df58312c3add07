"""Synthetic records: three hidden layers, five steps, two inputs, three widths."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from tpcalc.results import (
    Comparison,
    ComparisonRow,
    Estimate,
    FiniteRow,
    FiniteTable,
    Formula,
    LimitTable,
    Method,
    Provenance,
    ScalarRow,
    SlopeRow,
    VectorRow,
)
from tpcalc.views import ReportInput

STEPS, INPUTS, LAYERS = 5, 2, 3
WIDTHS = (256, 1024, 4096)
SEEDS = 16
DIGEST = "3f7a19c2e0d4"
MATHML = (
    "<math><mrow><msub><mi>Z</mi><mi>h</mi></msub><mo>=</mo><mfrac><mn>1</mn><mn>2</mn></mfrac>"
    "<mo>&InvisibleTimes;</mo><mi>g</mi></mrow></math>"
)


def centre(step: int, index: int, output: int = 0) -> float:
    sign = 1 if (index + output) % 2 == 0 else -1
    return sign * (1 - math.exp(-0.45 * step)) * (0.9 + 0.05 * index)


def square(letter: str, layer: int, step: int) -> float:
    scale = {"h": 1.0, "x": 0.43, "dh": 0.21, "dx": 0.35}[letter]
    return scale * (1 + 0.03 * layer + 0.05 * layer * step)


def particles(value: float, stderr: float, **more: object) -> Estimate:
    made = Estimate(value, stderr, Method.PARTICLES, samples=16384, replicates=8, seed=1)
    return replace(made, **more)  # type: ignore[arg-type]


def exact(value: float, formula: str | None = None) -> Estimate:
    return Estimate(value, 0.0, Method.EXACT, formula=formula)


def scalar_names(outputs: int) -> list[tuple[str, float]]:
    found = []
    for t in range(STEPS + 1):
        for i in range(INPUTS):
            for k in range(outputs):
                name = f"f[{t},{i}]" if outputs == 1 else f"f[{t},{i},{k}]"
                found.append((name, centre(t, i, k)))
    return found


def vector_names() -> list[tuple[str, float]]:
    return [
        (f"{letter}[{layer},{t},{i}]", square(letter, layer, t))
        for letter in ("h", "x", "dh")
        for layer in range(1, LAYERS + 1)
        for t in range(STEPS + 1)
        for i in range(INPUTS)
    ]


def origin(seconds: float, *settings: tuple[str, str]) -> Provenance:
    return Provenance(
        "0.1.0",
        DIGEST,
        seed=1,
        settings=settings,
        libraries=(("numpy", "2.4.6"), ("numba", "0.68.1")),
        seconds=seconds,
    )


def make_limit(outputs: int = 1) -> LimitTable:
    scalars = []
    for name, value in scalar_names(outputs):
        first = name.startswith("f[0,")
        scalars.append(ScalarRow(name, particles(value, 1.3e-4 if first else 8.4e-4)))
    formula = Formula("Zh/2", r"\frac{Z^{h}}{2}", MATHML)
    vectors = [
        VectorRow(
            name,
            exact(0.0) if ",0," in name else particles(0.0021, 0.0012),
            exact(value) if name.startswith("h[1,0") else particles(value, 0.0017 * value),
            formula=formula if name == "h[1,0,0]" else None,
        )
        for name, value in vector_names()
    ]
    return LimitTable(tuple(scalars), tuple(vectors), origin(0.84, ("replicates", "8")))


def make_finite(outputs: int = 1, bias: float = 6.0) -> FiniteTable:
    noise = random.Random(7)
    rows = []
    for width in WIDTHS:
        named = [(n, "value", v, 0.9) for n, v in scalar_names(outputs)]
        named += [(n, "second_moment", v, 1.1 * v) for n, v in vector_names()]
        for name, statistic, value, spread in named:
            shift = 0.0 if name.startswith("f[0,") else bias / width
            values = tuple(
                value + shift + noise.gauss(0.0, spread / math.sqrt(width)) for _ in range(SEEDS)
            )
            rows.append(FiniteRow(name, statistic, width, values))
    settings = (("dtype", "float64"), ("device", "cpu"))
    return FiniteTable(tuple(rows), WIDTHS, SEEDS, "lazy", origin(12.6, *settings))


def make_comparison(limit: LimitTable, finite: FiniteTable) -> Comparison:
    centres = {(row.name, "value"): row.estimate for row in limit.scalars}
    centres |= {(row.name, "second_moment"): row.second_moment for row in limit.vectors}
    rows = []
    for row in finite.rows:
        estimate = centres[row.name, row.statistic]
        mean = math.fsum(row.values) / len(row.values)
        variance = math.fsum((v - mean) ** 2 for v in row.values) / (len(row.values) - 1)
        stderr = math.sqrt(variance / len(row.values))
        spread = math.hypot(stderr, estimate.stderr)
        z = (mean - estimate.value) / spread
        rows.append(
            ComparisonRow(
                row.name,
                row.statistic,
                estimate.value,
                estimate.stderr,
                row.width,
                mean,
                stderr,
                len(row.values),
                z,
                limit_std=estimate.std,
                finite_std=math.sqrt(variance) if estimate.std is not None else None,
                method=estimate.method,
                limit_std_error=estimate.std_error,
            )
        )
    last = f",{STEPS}," if limit.vectors else ""
    slopes = [
        SlopeRow(name, statistic, -0.5 - 0.01 * k, -0.58 - 0.01 * k, -0.43 - 0.01 * k)
        for k, (name, statistic) in enumerate(
            key for key in centres if last in key[0] or key[0].startswith(f"f[{STEPS},")
        )
    ]
    return Comparison(tuple(rows), tuple(slopes), origin(0.02))


def make_report(outputs: int = 1) -> ReportInput:
    limit, finite = make_limit(outputs), make_finite(outputs)
    return ReportInput(
        "Three hidden layers, μP, five SGD steps",
        model={
            "Architecture": "multilayer perceptron",
            "Hidden layers": "3",
            "Activation": "tanh",
            "Parameterization": "mup",
            "Learning rate": "0.5",
            "Loss": "mse",
            "Data": "digits, classes 0 and 1",
            "Steps": "5",
            "Batch": "2 samples a step",
        },
        program_words=(
            "The input enters through a Gaussian matrix: h1 = W1 ξ.",
            "Each further layer multiplies by n^(-1/2) W and applies tanh.",
            "The output is f = n^-1 v · x3.",
            "Every step moves all weights against the gradient of the loss.",
        ),
        program_text="\n".join(f"%{k} = Nonlin tanh %{k - 1}" for k in range(1, 31)),
        formulas=(("h[2,0,0]", Formula("Zh2 = g/2", r"Z^{h_2} = \frac{g}{2}", MATHML)),),
        limit=limit,
        finite=finite,
        comparison=make_comparison(limit, finite),
    )


@pytest.fixture(scope="session")
def report() -> ReportInput:
    return make_report()


@pytest.fixture(scope="session")
def several_outputs() -> ReportInput:
    return make_report(outputs=3)


@pytest.fixture(scope="session")
def random_output() -> ReportInput:
    """An output that is random in the limit: standard deviation 1.25."""
    noise = random.Random(3)
    scalars = tuple(
        ScalarRow(f"f[{t},0]", particles(0.003, 0.012, std=1.25, std_error=0.11)) for t in range(3)
    )
    limit = LimitTable(scalars, (), origin(0.4))
    rows = tuple(
        FiniteRow(f"f[{t},0]", "value", width, tuple(noise.gauss(0, 1.25) for _ in range(SEEDS)))
        for width in WIDTHS
        for t in range(3)
    )
    finite = FiniteTable(rows, WIDTHS, SEEDS, "dense", origin(3.0, ("device", "cpu")))
    made = make_comparison(limit, finite)
    slopes = tuple(
        SlopeRow(row.name, "value", None, None, None, "random in the limit") for row in scalars
    )
    return ReportInput(
        "NTK output",
        limit=limit,
        finite=finite,
        comparison=replace(made, slopes=slopes),
    )


@pytest.fixture
def limit_of() -> Callable[..., LimitTable]:
    """A table of scalars from names and estimates."""

    def build(**estimates: Estimate) -> LimitTable:
        rows = tuple(ScalarRow(name, estimate) for name, estimate in estimates.items())
        return LimitTable(rows, (), origin(0.1))

    return build
