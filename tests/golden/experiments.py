"""Hand-made experiments: curves of two parameterizations; ranks and rates of a third."""

from __future__ import annotations

from tpcalc.results import Experiment, Provenance, Run, Setting, SlopeRow

__all__ = ["CURVES", "RANKS"]

MADE = Provenance("0.1.0", "ab12cd34", 0, (("trials", "2"),), (("torch", "2.13.0"),), 3.5)
SHARES = (("", (0.25, 0.75)), ("mnist", (0.098, 0.1135, 0.7885)))


def _setting(act: str, name: str, width: int = 64, calibrated: bool = False) -> Setting:
    return Setting(act, name, 3, width, calibrated=calibrated, steps=4, batch=8)


CURVES = Experiment(
    name="E0",
    title="Two parameterizations",
    data="24 training and 8 test images of 4 pixels, 2 classes, by hand",
    runs=(
        Run(
            _setting("relu", "naive-ip"),
            losses=((0.7, 0.7, 0.7, 0.7), (0.7, 0.7, 0.7, 0.7)),
            outputs=((1e-7, 1e-7, 1e-7, 1e-7), (3e-7, 3e-7, 3e-7, 3e-7)),
            accuracies=(0.25, 0.25),
            rates=((0.01,) * 4,) * 2,
            diverged=(None, None),
            seconds=0.25,
        ),
        Run(
            _setting("tanh", "naive-ip"),
            losses=((0.7, 0.699, 0.698, 0.698), (0.7, 0.7, 0.7, 0.7)),
            outputs=((0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)),
            accuracies=(0.25, 0.5),
            rates=((0.01,) * 4,) * 2,
            diverged=(None, None),
            seconds=0.25,
        ),
        Run(
            _setting("relu", "ip-llr", calibrated=True),
            losses=((0.75, 0.6, 0.4, 0.3), (0.65, 0.5, 0.4, 0.2)),
            outputs=((0.0, 0.5, 0.75, 1.0), (0.0, 0.4, 0.9, 1.2)),
            accuracies=(1.0, 0.875),
            rates=((0.5, 20.0, 40.0, 500.0), (0.5, 22.0, 44.0, 60.0)),
            diverged=(None, None),
            seconds=0.5,
        ),
        Run(
            _setting("tanh", "ip-llr", calibrated=True),
            losses=((0.7, 0.6, 0.5, 0.4), (0.7, 30.0, float("nan"), float("nan"))),
            outputs=((0.0, 0.5, 0.75, 1.0), (0.0, 70.0, float("nan"), float("nan"))),
            accuracies=(0.875, float("nan")),
            rates=((0.5, 20.0, 500.0, 500.0), (0.5, 22.0, 500.0, 500.0)),
            diverged=(None, 2),
            seconds=0.5,
        ),
    ),
    reported=(
        ("Table 3", "naive-ip, relu", "mnist", 0.098),
        ("Table 3", "ip-llr, relu", "mnist", 0.964),
        ("Table 5", "ip-llr, relu", "cifar10", 0.383),
    ),
    predicted=(
        ("naive-ip, relu", "trivial at all t: the first updates are n^(-2)."),
        ("naive-ip, tanh", "trivial at all t: the first updates are n^(-2)."),
        ("ip-llr, relu", "feature-learning at all t: layer 3 moves."),
    ),
    provenance=MADE,
    source="nobody, section 6",
    shows=("losses", "outputs", "accuracies", "rates"),
    shares=SHARES,
    theorems=(("naive-ip, tanh", "trivial_naive_ip holds (Proposition 3.1)"),),
    vanishing=("naive-ip, relu", "naive-ip, tanh"),
    notes=("A note | with a bar.",),
)

RANKS = Experiment(
    name="E9",
    title="Ranks",
    data="by hand",
    runs=(
        Run(
            _setting("relu", "ip-llr", calibrated=True),
            losses=((0.7,),),
            outputs=((0.0,),),
            ranks_h=((64, 9, 1),),
            ranks_x=((64, 8, 1),),
            rates=((0.5, 20.0, 40.0, 60.0),),
            diverged=(None,),
        ),
        Run(
            _setting("tanh", "mup"),
            losses=((0.7,), (0.7,)),
            outputs=((0.0,), (0.0,)),
            ranks_h=((64, 60, 50), (64, 62, 58)),
            ranks_x=((64, 64, 64), (64, 64, 64)),
            diverged=(None, None),
        ),
    ),
    reported=(),
    predicted=(),
    provenance=MADE,
    shows=("ranks", "rates"),
    ranked=500,
    by_width=tuple(
        Run(_setting("relu", "ip-llr", width, True), (), (), rates=((0.5, 20.0, width**0.5, 9.0),))
        for width in (64, 128, 256)
    ),
    slopes=(
        (
            "ip-llr, relu",
            (
                SlopeRow("eta[1]", "mean", 0.0, -0.02, 0.02),
                SlopeRow("eta[2]", "mean", 0.0, None, None),
                SlopeRow("eta[3]", "mean", 0.5, 0.48, 0.52),
                SlopeRow("eta[4]", "mean", None, None, None, "too few widths"),
            ),
        ),
    ),
    growth=(("ip-llr, relu", ("constant", "constant", ">= n^(1/2)", "open")),),
)
