"""Activations at every door of signal propagation, in every way in which one is handed over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layered import Activation

import tpcalc as tp
from tpcalc.activations.entries import lookup
from tpcalc.activations.given import as_activation
from tpcalc.errors import StudyError, TpcalcError, TraceError, UnknownName
from tpcalc.functions import Var
from tpcalc.study.program_file import load_activation, load_network

s = tp.signal
WEIGHTS = s.spectra.weight_spectrum("gaussian", 1)
SNAKE = tp.function("snake", lambda z: z + 0.2 * tp.sin(z) ** 2)
WAYS: list[tuple[Any, str]] = [
    ("tanh", "tanh"),
    (tp.tanh, "tanh"),
    (lookup("tanh"), "tanh"),
    (lookup("tanh").fn, "tanh(x0)"),
    (lookup("tanh").fn.expr, "tanh(x0)"),
    (Activation("tanh"), "tanh"),
    (tp.leaky_relu(0.2), "leaky_relu[1/5]"),
    (SNAKE, "snake"),
    ("0.5*z*tanh(z)", "0.5*z*tanh(z)"),
    ("-x/(1 + x**2)", "-x/(1 + x**2)"),
    (lambda z: 0.5 * z * tp.erf(z), "0.5*x0*erf(x0)"),
]
DOORS: dict[str, Callable[[Any], Any]] = {
    "survey": lambda act: s.survey(act, 0.7, 0.1, depth=3).chi,
    "sheet": lambda act: s.sheet(act).split.nlc,
    "Design": lambda act: s.nlc(s.mlp(2, s.Design(act, 0.7))),
    "MacroLayers": lambda act: s.nlc(s.MacroLayers(3, act).network()),
    "MLP": lambda act: s.nlc(tp.MLP(2, act)),
    "LayerMap": lambda act: s.LayerMap(act, 0.7, 0.1).fixed_point,
    "Kernels": lambda act: s.activations.Kernels(act).tau,
    "LengthKernel": lambda act: s.activations.LengthKernel(act).tau,
    "CovarianceKernel": lambda act: s.activations.CovarianceKernel(act).split,
    "Iteration": lambda act: s.activations.Iteration(act).found,
    "edge_of_chaos": lambda act: s.edge_of_chaos(act, 0.5),
    "edge_curve": lambda act: s.maps.edge_curve(act, points=3).curve,
    "jacobian": lambda act: s.spectra.jacobian(act, 1.0, WEIGHTS, 2),
    "slope_spectrum": lambda act: s.spectra.slope_spectrum(act, 1.0),
    "padded_variance": lambda act: s.spectra.padded_variance(act, 1.0, 0.5, 2),
    "probe_program": lambda act: s.spectra.probe_program(act, "gaussian", 0.5, 2),
    "calibrated": lambda act: s.activations.calibrated(act, 1.2, debias=True),
    "debiased": lambda act: s.activations.debiased(act),
    "normalized": lambda act: s.activations.normalized(act),
    "stability_number": lambda act: s.stability_number(act, 1.0),
    "plain": lambda act: s.plain(act, 2),
    "split": lambda act: s.split(act),
    "asymptotes": lambda act: s.activations.asymptotes(act),
}


@pytest.mark.parametrize(
    "door", [pytest.param(one, marks=[pytest.mark.slow] * (one == "survey")) for one in DOORS]
)
def test_every_door_takes_every_way(door: str) -> None:
    for way, _ in WAYS:
        wanted = DOORS[door](as_activation(way).expr)
        assert DOORS[door](way) == wanted


@pytest.mark.parametrize(("way", "name"), WAYS, ids=[name for _, name in WAYS])
def test_an_activation_has_a_name(way: Any, name: str) -> None:
    assert as_activation(way).text == name
    assert Activation(way).name == name


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ("tahn", UnknownName, "Did you mean 'tanh'"),
        ("z*tahn(z)", UnknownName, r"the formula 'z\*tahn\(z\)'.*Did you mean 'tanh'"),
        ("z*w", StudyError, "has the variables w, z"),
        (3, StudyError, "the activation is 3"),
        (None, StudyError, "the activation is None"),
        (Var(0) + Var(1), StudyError, "has several arguments"),
        (np.tanh, TraceError, "tanh does not take expressions"),
        ("log", StudyError, "log is defined between 0 and inf only"),
        (tp.log, StudyError, "log is defined between 0 and inf only"),
        ("relu^p", TpcalcError, "p"),
    ],
)
def test_what_is_no_activation(given: Any, error: type[TpcalcError], said: str) -> None:
    with pytest.raises(error, match=said):
        s.sheet(given)


def test_networks_and_activations_of_files(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "import tpcalc as tp\n"
        "from tpcalc import Network\n"
        "snake = tp.function('snake', lambda z: z + tp.sin(z) ** 2)\n"
        "def wave(z): return z * tp.tanh(z)\n"
        "class Net(tp.Network):\n"
        "    def __init__(self, t):\n"
        "        self.u, self.v = t.linear(t.n, 'in'), t.linear(t.outputs, t.n)\n"
        "    def forward(self, x): return self.v(snake(self.u(x)))\n"
    )
    assert load_activation(file)[0] == "snake"
    assert as_activation(load_activation(file, "wave")[1]).expr.text == "x0*tanh(x0)"
    name, network = load_network(file)
    assert name == "Net"
    assert s.nlc(network).value == pytest.approx(s.sheet(load_activation(file)[1]).split.nlc.value)
    with pytest.raises(StudyError, match="snake is a value of type Elementwise, no network"):
        load_network(file, "snake")
    with pytest.raises(UnknownName, match="no activation called 'wav'"):
        load_activation(file, "wav")
