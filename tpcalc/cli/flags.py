"""The flags of the commands: each is written once, with the key of a study that it sets."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec

import typer

from tpcalc.cli.option import Flags, Option, options

__all__ = [
    "DATA",
    "DEVICE",
    "INPUTS",
    "KERNEL",
    "LIMIT",
    "MEASURE",
    "NETWORK",
    "RATES_OPEN",
    "RUN",
    "SEED",
    "SIMULATE",
    "TRAINING",
    "AsJson",
    "At",
    "Flags",
    "Given",
    "Measured",
    "ModelWord",
    "NetworkWord",
    "NoVerify",
    "ReportOut",
    "takes",
]

P = ParamSpec("P")

ModelWord = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A study file (study.toml), a program in a file (file.py:name, file.json), or a "
        "catalogue architecture (mlp, resnet, rnn) with the flags below.",
        show_default=False,
    ),
]
NetworkWord = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A study file (study.toml), or a catalogue architecture (mlp, resnet, rnn) with the "
        "flags below.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
At = Annotated[
    list[str] | None,
    typer.Option(
        "--at",
        metavar="NAME=VALUE",
        help="Where comparisons of exponents with symbols are decided; several with commas.",
        show_default=False,
    ),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        "--given",
        metavar="NAME=VALUE",
        help="The value of a random input, or of an output that is Gaussian in the limit, such as "
        "f[0,0]=0.4; several with commas.",
        show_default=False,
    ),
]
Measured = Annotated[
    bool,
    typer.Option("--measure", help="Measure slopes in the width at finite networks besides."),
]
ReportOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write a report here: .html (one page with plots) or .md.",
        show_default=False,
    ),
]
NoVerify = Annotated[
    bool,
    typer.Option("--no-verify", help="Leave out the numerical test of expectations for zero."),
]


NETWORK = options(
    "Network",
    [
        (
            "--depth",
            "model.depth",
            str,
            "Number of hidden layers, or of residual blocks (3 by default); of blocks also the "
            "symbol L: limits in the depth.",
            "N|L",
        ),
        ("--length", "model.length", int, "Number of tokens T of an rnn (4 by default).", "T"),
        (
            "--act",
            "model.act",
            str,
            "Activation: relu, tanh, relu^2, leaky_relu:0.2 (relu by default; erf for an rnn).",
            "NAME",
        ),
        (
            "--param",
            "model.param",
            str,
            "Parameterization: ntk, mup, standard, naive-ip, ip-llr, ... (mup by default).",
            "NAME",
        ),
        ("--p", "model.p", float, "Degree of homogeneity for ip-llr.", "P"),
        (
            "--bias",
            "model.bias",
            str,
            "Layers of an mlp with biases (none by default).",
            "none|first|hidden|all",
        ),
        (
            "--weight-variance",
            "model.weight_variance",
            str,
            "Variance of the weights of hidden layers (1 by default); of an mlp also one for each.",
            "V[,V...]",
        ),
        (
            "--variances",
            "model.variances",
            str,
            "Variances of an mlp as factors in front of weights, or of the initial ones alone.",
            "factors|initial",
        ),
        (
            "--bias-variance",
            "model.bias_variance",
            str,
            "The same for their biases; where there were none, hidden layers have some.",
            "V",
        ),
        (
            "--weight-rate",
            "model.weight_rate",
            str,
            "Factor of the learning rates of an mlp's weights; also one for each layer.",
            "R[,R...]",
        ),
        (
            "--bias-rate",
            "model.bias_rate",
            str,
            "The same for its biases.",
            "R[,R...]",
        ),
        (
            "--input-variance",
            "model.input_variance",
            str,
            "The same for the input weights of an rnn (1 by default).",
            "V",
        ),
        (
            "--norm",
            "model.norm",
            str,
            "Normalisation of preactivations: layer norm or RMS norm (none by default).",
            "layer|rms|none",
        ),
        (
            "--alpha",
            "model.alpha",
            str,
            "Power of 1/L in front of a residual block (1/2 by default).",
            "A",
        ),
        (
            "--nonlin",
            "model.nonlin",
            str,
            "Activation of a residual block before, after or between weights (pre by default).",
            "pre|post|between",
        ),
        (
            "--center",
            "model.center",
            bool,
            "Take the average over coordinates off what a residual block adds.",
        ),
        ("--layers", "model.layers", int, "Matrices of a residual block (1 by default).", "K"),
        (
            "--multiplier",
            "model.multiplier",
            str,
            "The number in front of a residual block (1 by default).",
            "A",
        ),
        ("--shared", "model.shared", bool, "The same matrices in all residual blocks."),
        (
            "--law",
            "model.law",
            str,
            "Of the entries of their matrices (gaussian by default).",
            "NAME",
        ),
        (
            "--along",
            "model.along",
            str,
            "How a matrix depends on itself along the depth: rbf(1/10) (fresh by default).",
            "NAME",
        ),
        ("--hurst", "model.hurst", str, "The same: fractional noise of a Hurst exponent.", "H"),
        (
            "--base-depth",
            "model.base",
            int,
            "Residual blocks that count as one (1 by default).",
            "B",
        ),
        (
            "--outputs",
            "model.outputs",
            str,
            "Tokens at which an rnn is read off (last by default).",
            "last|all",
        ),
    ],
)
DATA = options(
    "Training",
    [
        (
            "--optimizer",
            "training.optimizer",
            str,
            "Optimizer (sgd by default): a name, with settings as in 'adamw(decay=0.1)', or a file "
            "of your own, my.opt.",
            "NAME",
        ),
        ("--lr", "training.lr", float, "Factor of the learning rate (1 by default).", "ETA"),
        (
            "--lr-depth",
            "training.lr_depth",
            str,
            "Of L residual blocks the gamma of their updates L^(-gamma); by default learning rates "
            "do not depend on L. In Python and study files also one by label: "
            "{'{l+1}.1': 0, '{l+1}.2': 1/2} of blocks of two layers.",
            "GAMMA",
        ),
        (
            "--schedule",
            "training.schedule",
            str,
            "Factors of the learning rate by step: warmup:2, linear, cosine, warmup:2,cosine, "
            "constant (constant by default).",
            "NAME",
        ),
        (
            "--group",
            "training.groups",
            dict,
            "Settings of some parameters: 'PATTERN: lr=0.5 power=-1/2 optimizer=sgd'; the pattern "
            "is a role (hidden, bias, ...), a group, a label or a glob. Once for each group.",
            "PATTERN: NAME=VALUE ...",
        ),
        (
            "--loss",
            "training.loss",
            str,
            "Loss (mse by default).",
            "mse|linear|logistic|xent",
        ),
        (
            "--steps",
            "training.steps",
            int,
            "Number of updates; t = 0..T are reported (3 by default).",
            "T",
        ),
        (
            "--data",
            "training.data",
            str,
            "digits, or a CSV file with header x1,...,xd,y (digits by default).",
            "digits|FILE.csv",
        ),
        (
            "--samples",
            "training.samples",
            int,
            "Samples of the data (4 digits, all of a file by default).",
            "N",
        ),
        ("--batch", "training.batch", int, "Samples used by each step (1 by default).", "B"),
        (
            "--query",
            "training.query",
            str,
            "A CSV file with more inputs at which outputs are reported.",
            "FILE.csv",
        ),
        (
            "--watch",
            "training.watch",
            tuple,
            "What is reported besides the outputs f: of h,x,dh,dx (all of them by default), of "
            "hhat,dhhat (with --norm) and of the contributions dW_x,dB of updates.",
            "h,x,...",
        ),
        ("--classes", "training.classes", list, "Which digits (0,1 by default).", "A,B,..."),
        ("--data-seed", "training.seed", int, "Seed of the choice of digits (0 by default).", "S"),
    ],
)
LIMIT = options(
    "Limit",
    [
        (
            "--method",
            "limit.method",
            str,
            "How expectations are found; auto: exact, else quadrature, else particles.",
            "auto|exact|quadrature|particles",
        ),
        ("--particles", "limit.samples", int, "Samples (particles) of each replicate.", "N"),
        ("--replicates", "limit.replicates", int, "Replicates behind a standard error.", "R"),
        (
            "--rel-error",
            "limit.rel_error",
            float,
            "Add samples until errors are below this share of their numbers.",
            "E",
        ),
        (
            "--max-particles",
            "limit.max_samples",
            int,
            "Where --rel-error stops adding (1048576 by default).",
            "N",
        ),
        ("--storage", "limit.storage", str, "float32: half the memory.", "float64|float32"),
    ],
)
SIMULATE = options(
    "Finite networks",
    [
        ("--widths", "simulate.widths", list, "Widths (256,1024,4096 by default).", "N,N,..."),
        ("--seeds", "simulate.seeds", int, "Networks of each width (64; dense 16).", "S"),
        (
            "--backend",
            "simulate.backend",
            str,
            "lazy: exact in law, at any width; dense: weights in full, on torch (lazy by default).",
            "lazy|dense",
        ),
        (
            "--dtype",
            "simulate.dtype",
            str,
            "On torch (default float64).",
            "float64|float32|bfloat16",
        ),
    ],
)
RUN = options(
    "Run",
    [
        ("--seed", ("limit.seed", "simulate.seed"), int, "Seed of all draws (0 by default).", "S"),
        (
            "--threads",
            ("limit.threads", "simulate.threads"),
            int,
            "Threads; no answer depends on them (all cores by default).",
            "K",
        ),
    ],
)
DEVICE = options(
    "Run",
    [("--device", ("limit.device", "simulate.device"), str, "Where torch computes.", "cpu|cuda")],
)

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
