"""The flags of the commands: each is written once, with the key of a study that it sets."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec

import typer

from tpcalc.cli.option import Flags as Flags
from tpcalc.cli.option import Option, options

P = ParamSpec("P")

ModelWord = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A study file (study.toml), a program in a file (file.py:name, file.json), or a "
        "catalogue architecture (mlp, resnet, rnn) with the flags below.",
    ),
]
NetworkWord = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A study file (study.toml), or a catalogue architecture (mlp, resnet, rnn) with the "
        "flags below.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
At = Annotated[
    list[str] | None,
    typer.Option(
        "--at",
        metavar="NAME=VALUE",
        help="Where comparisons of exponents with symbols are decided; several with commas.",
    ),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        "--given",
        metavar="NAME=VALUE",
        help="The value of a random input, or of an output that is Gaussian in the limit, such as "
        "f[0,0]=0.4; several with commas.",
    ),
]
Measured = Annotated[
    bool, typer.Option("--measure", help="Measure slopes in the width at finite networks besides.")
]
ReportOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write a report here: .html (one page with plots) or .md.",
    ),
]
WeightVariance = Annotated[
    str | None,
    typer.Option(
        metavar="V",
        help="Variance of the weights, times the fan-in; by default the one that keeps a second "
        "moment of 1 (2 for relu).",
    ),
]
BiasVariance = Annotated[
    str | None, typer.Option(metavar="V", help="Variance of the biases; 0 by default.")
]
NoVerify = Annotated[
    bool, typer.Option("--no-verify", help="Leave out the numerical test of expectations for zero.")
]


NETWORK = options(
    "Network",
    ("model",),
    [
        (
            "--depth",
            "N|L",
            "Number of hidden layers, or of residual blocks (3 by default); of blocks also the "
            "symbol L: limits in the depth.",
        ),
        ("--length", "T", "Number of tokens T of an rnn (4 by default).", int),
        (
            "--act",
            "NAME",
            "Activation: relu, tanh, relu^2, leaky_relu:0.2 (relu by default; erf for an rnn).",
        ),
        (
            "--param",
            "NAME",
            "Parameterization: ntk, mup, standard, naive-ip, ip-llr, ... (mup by default).",
        ),
        ("--p", "P", "Degree of homogeneity for ip-llr.", float),
        ("--bias", "none|first|hidden|all", "Layers of an mlp with biases (none by default)."),
        (
            "--weight-variance",
            "V[,V...]",
            "Variance of the weights of hidden layers (1 by default); of an mlp also one for each.",
        ),
        (
            "--variances",
            "factors|initial",
            "Variances of an mlp as factors in front of weights, or of the initial ones alone.",
        ),
        (
            "--bias-variance",
            "V",
            "The same for their biases; where there were none, hidden layers have some.",
        ),
        (
            "--weight-rate",
            "R[,R...]",
            "Factor of the learning rates of an mlp's weights; also one for each layer.",
        ),
        ("--bias-rate", "R[,R...]", "The same for its biases."),
        ("--input-variance", "V", "The same for the input weights of an rnn (1 by default)."),
        (
            "--norm",
            "layer|rms|none",
            "Normalisation of preactivations: layer norm or RMS norm (none by default).",
        ),
        ("--alpha", "A", "Power of 1/L in front of a residual block (1/2 by default)."),
        (
            "--nonlin",
            "pre|post|between",
            "Activation of a residual block before, after or between weights (pre by default).",
        ),
        (
            "--center",
            None,
            "Take the average over coordinates off what a residual block adds.",
            bool,
        ),
        ("--layers", "K", "Matrices of a residual block (1 by default).", int),
        ("--multiplier", "A", "The number in front of a residual block (1 by default)."),
        ("--shared", None, "The same matrices in all residual blocks.", bool),
        ("--law", "NAME", "Of the entries of their matrices (gaussian by default)."),
        (
            "--along",
            "NAME",
            "How a matrix depends on itself along the depth: rbf(1/10) (fresh by default).",
        ),
        ("--hurst", "H", "The same: fractional noise of a Hurst exponent."),
        ("--base-depth", "B", "Residual blocks that count as one (1 by default).", int, "base"),
        ("--outputs", "last|all", "Tokens at which an rnn is read off (last by default)."),
    ],
)
DATA = options(
    "Training",
    ("training",),
    [
        (
            "--optimizer",
            "NAME",
            "Optimizer (sgd by default): a name, with settings as in 'adamw(decay=0.1)', or a file "
            "of your own, my.opt.",
        ),
        ("--lr", "ETA", "Factor of the learning rate (1 by default).", float),
        (
            "--lr-depth",
            "GAMMA",
            "Of L residual blocks the gamma of their updates L^(-gamma); by default learning rates "
            "do not depend on L. In Python and study files also one by label: "
            "{'{l+1}.1': 0, '{l+1}.2': 1/2} of blocks of two layers.",
        ),
        (
            "--schedule",
            "NAME",
            "Factors of the learning rate by step: warmup:2, linear, cosine, warmup:2,cosine, "
            "constant (constant by default).",
        ),
        (
            "--group",
            "PATTERN: NAME=VALUE ...",
            "Settings of some parameters: 'PATTERN: lr=0.5 power=-1/2 optimizer=sgd'; the pattern "
            "is a role (hidden, bias, ...), a group, a label or a glob. Once for each group.",
            dict,
            "groups",
        ),
        ("--loss", "mse|linear|logistic|xent", "Loss (mse by default)."),
        ("--steps", "T", "Number of updates; t = 0..T are reported (3 by default).", int),
        (
            "--data",
            "digits|FILE.csv",
            "digits, or a CSV file with header x1,...,xd,y (digits by default).",
        ),
        ("--samples", "N", "Samples of the data (4 digits, all of a file by default).", int),
        ("--batch", "B", "Samples used by each step (1 by default).", int),
        ("--query", "FILE.csv", "A CSV file with more inputs at which outputs are reported."),
        (
            "--watch",
            "h,x,...",
            "What is reported besides the outputs f: of h,x,dh,dx (all of them by default), of "
            "hhat,dhhat (with --norm) and of the contributions dW_x,dB of updates.",
            tuple,
        ),
        ("--classes", "A,B,...", "Which digits (0,1 by default).", list),
        ("--data-seed", "S", "Seed of the choice of digits (0 by default).", int, "seed"),
    ],
)
LIMIT = options(
    "Limit",
    ("limit",),
    [
        (
            "--method",
            "auto|exact|quadrature|particles",
            "How expectations are found; auto: exact, else quadrature, else particles.",
        ),
        ("--particles", "N", "Samples (particles) of each replicate.", int, "samples"),
        ("--replicates", "R", "Replicates behind a standard error.", int),
        (
            "--rel-error",
            "E",
            "Add samples until errors are below this share of their numbers.",
            float,
        ),
        (
            "--max-particles",
            "N",
            "Where --rel-error stops adding (1048576 by default).",
            int,
            "max_samples",
        ),
        ("--storage", "float64|float32", "float32: half the memory."),
    ],
)
SIMULATE = options(
    "Finite networks",
    ("simulate",),
    [
        ("--widths", "N,N,...", "Widths (256,1024,4096 by default).", list),
        ("--seeds", "S", "Networks of each width (64; dense 16).", int),
        (
            "--backend",
            "lazy|dense",
            "lazy: exact in law, at any width; dense: weights in full, on torch (lazy by default).",
        ),
        ("--dtype", "float64|float32|bfloat16", "On torch (default float64)."),
    ],
)
RUN = options(
    "Run",
    ("limit", "simulate"),
    [
        ("--seed", "S", "Seed of all draws (0 by default).", int),
        ("--threads", "K", "Threads; no answer depends on them (all cores by default).", int),
    ],
)
DEVICE = options("Run", ("limit", "simulate"), [("--device", "cpu|cuda", "Where torch computes.")])

# What an analysis trains by itself: outputs to report are no part of it.
_TRAINED = {
    "--data": "digits, or a CSV file with header x1,...,xd,y (generic inputs by default).",
    "--steps": "Number of updates that are followed.",
}
TRAINING = tuple(
    replace(option, help=_TRAINED.get(option.name, option.help))
    for option in DATA
    if option.name not in ("--query", "--watch")
)
# Where the learning rates are what is asked for.
RATES_OPEN = tuple(option for option in TRAINING if option.name != "--lr")
MEASURE = tuple(
    replace(option, help=text, panel="With --measure")
    for option in SIMULATE
    for name, text in (("--widths", "Widths."), ("--seeds", "Networks of each width."))
    if option.name == name
)
# A kernel is in the parameterization that it is named after unless another is asked for.
KERNEL = tuple(
    replace(option, help=option.help.replace("mup by default", "ntk by default"))
    for option in NETWORK
)
# What a kernel is of: inputs alone, many of them.
_INPUTS = {
    "--data": "digits, or a CSV file with header x1,...,xd,y (digits by default).",
    "--samples": "How many inputs (100 digits, all of a file by default).",
    "--classes": "Which digits (all by default).",
    "--data-seed": "Seed of the choice of digits (0 by default).",
}
INPUTS = tuple(
    replace(option, help=_INPUTS[option.name], panel="Inputs")
    for option in DATA
    if option.name in _INPUTS
)
SEED = tuple(option for option in RUN if option.name == "--seed")


def takes(
    *groups: Sequence[Option],
) -> Callable[[Callable[Concatenate[str, Flags, P], None]], Callable[..., None]]:
    """Give a command the flags of some groups; it receives those that were typed.

    The command's second parameter is replaced by one parameter for each flag, which is what typer
    reads, so that six commands share one description of each flag.
    """
    options = {option.parameter.name: option for group in groups for option in group}

    def decorate(command: Callable[Concatenate[str, Flags, P], None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        first, _, *rest = signature.parameters.values()
        keyword = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in rest]
        flags = [option.parameter for option in options.values()]
        call: Callable[..., None] = command  # all arguments come by name, from typer
        parameters = [first, *flags, *keyword]

        @functools.wraps(command)
        def wrapper(**values: Any) -> None:
            typed = [
                flag
                for name, option in options.items()
                if (value := values.pop(name)) not in (None, [])
                for flag in option.given(value)
            ]
            call(values.pop(first.name), typed, **values)

        wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {item.name: item.annotation for item in parameters}
        return wrapper

    return decorate
