"""Training runs of the corpus: networks, parameterizations, losses, batches."""

from __future__ import annotations

from fractions import Fraction

import tpcalc as tp

__all__ = ["REGIMES", "STRUCTURES"]

INPUTS = ((1.0, 0.5), (-0.25, 0.75), (0.5, -1.0), (0.75, 0.25))
TOKENS = ((1.0, 0.5, -0.5, 0.75), (-0.25, 0.75, 0.5, 1.0), (0.5, -1.0, 0.25, 0.5))
REAL = (1.0, -0.5, 0.75, -1.0)
SIGNS = (1.0, -1.0, 1.0, -1.0)
CLASSES = ((1.0, 0.0), (0.0, 1.0), (0.0, 1.0), (1.0, 0.0))
HALF = Fraction(1, 2)


def data(loss: str = "mse", tokens: bool = False) -> tp.Samples:
    """Four samples of two features, or three of two tokens of two features."""
    inputs = TOKENS if tokens else INPUTS
    if loss == "xent":
        return tp.Samples(inputs, CLASSES[: len(inputs)])
    targets = SIGNS if loss == "logistic" else REAL
    return tp.Samples(inputs, tuple((y,) for y in targets[: len(inputs)]))


def run(net: object, rule: str, steps: int, loss: str = "mse", **options: object) -> tp.Program:
    """A training run on the shared samples."""
    options = {"lr": HALF, **options}
    samples = data(loss, isinstance(net, tp.RNN))
    return tp.train(net, rule, samples, steps=steps, loss=loss, **options)  # type: ignore[arg-type]


def digits() -> tp.Samples:
    return tp.digits(classes=(0, 1), samples=8, seed=0)


def moved() -> tp.Program:
    """What a step adds to an output: the kernel, where the output itself is random."""
    net = tp.MLP(3, "relu", bias="first")
    samples = tp.Samples(((0.6, -0.3, 0.5, 0.2),), ((0.0,),))
    program = tp.train(
        net, "ntk", samples, loss="linear", queries=[(0.1, 0.7, -0.2, 0.9)], watch=()
    )
    return tp.extend(program, lambda t: t.output("moved", t["f[1,1]"] - t["f[0,1]"]))


# Each parameterization, with what it is known for: features, kernels, layers that die or explode.
REGIMES = {
    "mup-linear-2-steps": lambda: run(tp.MLP(2, "linear"), "mup", 2),
    "mup-relu-1-step": lambda: run(tp.MLP(2, "relu"), "mup", 1),
    "mup-relu-depth-3-3-steps": lambda: run(tp.MLP(3, "relu"), "mup", 3, watch=("h",)),
    "mup-relu-depth-4-no-step": lambda: run(tp.MLP(4, "relu"), "mup", 0),
    "mup-tanh-2-steps": lambda: run(tp.MLP(2, "tanh"), "mup", 2, watch=("h", "dh", "dW_x")),
    "ntk-tanh-2-steps": lambda: run(tp.MLP(2, "tanh"), "ntk", 2, watch=("h",)),
    "ntk-relu-batch-2": lambda: run(tp.MLP(2, "relu"), "ntk", 2, batch=2, watch=("h", "dx")),
    "ntk-linear-loss": lambda: run(
        tp.MLP(2, "relu", bias="first"), "ntk", 1, "linear", queries=[(0.1, 0.7)], watch=()
    ),
    "ntk-all-biases": lambda: run(tp.MLP(2, "erf", bias="all"), "ntk", 1, watch=("h", "dB")),
    "ntk-moved": moved,
    "standard-unstable": lambda: run(tp.MLP(2, "tanh"), "standard", 2),
    "standard-relu-unstable": lambda: run(tp.MLP(3, "relu"), "standard", 1),
    "standard-1-relu": lambda: run(tp.MLP(3, "relu"), "standard:1", 2, watch=("h", "dW_x")),
    "standard-half": lambda: run(tp.MLP(2, "erf"), "standard:1/2", 2, watch=("h",)),
    "naive-ip-relu": lambda: run(tp.MLP(3, "relu", bias="first"), "naive-ip", 2),
    "naive-ip-depth-1": lambda: run(tp.MLP(1, "relu"), "naive-ip", 2, watch=("h", "dh")),
    "ip-llr-relu": lambda: run(tp.MLP(3, "relu", bias="first"), "ip-llr", 2, watch=("h", "dW_x")),
    "ip-llr-tanh": lambda: run(tp.MLP(3, "tanh", bias="first"), "ip-llr", 1, watch=("h",)),
    "ip-llr-batch-2": lambda: run(
        tp.MLP(2, "relu", bias="first"), "ip-llr", 1, batch=2, watch=("h", "dh")
    ),
    "ip-llr-squares": lambda: run(
        tp.MLP(2, "relu^2", bias="first"), "ip-llr:2", 1, lr=Fraction(3, 10), watch=("h",)
    ),
    "ip-bias-relu": lambda: run(tp.MLP(3, "relu", bias="all"), "ip-bias", 1, watch=("h", "dB")),
    "ip-non-centered-relu": lambda: run(
        tp.MLP(3, "relu", bias="all"), "ip-non-centered", 1, watch=("h",)
    ),
    "ip-non-centered-depth-2": lambda: run(tp.MLP(2, "relu"), "ip-non-centered", 2, watch=("h",)),
    "hp-relu": lambda: run(tp.MLP(2, "relu", bias="first"), "hp", 2, watch=("h", "dW_x")),
    "hpz-relu": lambda: run(tp.MLP(2, "relu", bias="first"), "hpz", 2, watch=("h", "x")),
    "hpz-fixed-layer": lambda: run(
        tp.MLP(2, "relu", bias="first"), "hpz", 1, lr=lambda layer, step: int(layer != 2)
    ),
    "own-powers": lambda: run(
        tp.MLP(2, "tanh"), "ac:0,1/2,3/4;-1,-1,-1/2", 1, watch=("h", "dh", "dW_x")
    ),
}

# Each structure, loss and activation, in the parameterization that learns features.
STRUCTURES = {
    "gelu": lambda: run(tp.MLP(2, "gelu"), "mup", 1, watch=("h", "x")),
    "elu": lambda: run(tp.MLP(2, "elu"), "mup", 1, watch=("h", "dh")),
    "squared-relu": lambda: run(tp.MLP(2, "relu^2"), "mup", 1, watch=("h",)),
    "biases": lambda: run(tp.MLP(2, "tanh", bias="all"), "mup", 2, watch=("h", "dB")),
    "variances": lambda: run(
        tp.MLP(2, "relu", weight_variance=2, bias_variance=Fraction(1, 10)), "mup", 1
    ),
    "batch-2": lambda: run(tp.MLP(2, "tanh"), "mup", 1, batch=2),
    "batch-2-relu-2-steps": lambda: run(tp.MLP(2, "relu"), "mup", 2, batch=2, watch=("h",)),
    "digits-batch-4": lambda: tp.train(
        tp.MLP(2, "relu"), "mup", digits(), batch=4, queries=[digits().inputs[7]], watch=("h",)
    ),
    "two-outputs": lambda: tp.train(
        tp.MLP(2, "tanh"), "ntk", tp.Samples(INPUTS, CLASSES), batch=2, watch=()
    ),
    "query": lambda: run(
        tp.MLP(2, "relu"), "mup", 1, queries=[(0.25, 0.5)], watch=("h", "dx", "dW_x")
    ),
    "rates-by-layer": lambda: run(
        tp.MLP(2, "relu"), "mup", 2, lr=lambda layer, step: Fraction(layer, 2 + step), watch=("h",)
    ),
    "linear-loss": lambda: run(tp.MLP(2, "relu"), "mup", 2, "linear", watch=("h",)),
    "logistic": lambda: run(tp.MLP(2, "leaky_relu:0.2"), "mup", 2, "logistic", watch=("dh",)),
    "xent": lambda: run(tp.MLP(2, "gelu"), "mup", 1, "xent", batch=2, watch=("x", "dW_x")),
    "layer-norm": lambda: run(
        tp.MLP(2, "tanh", norm="layer"), "mup", 1, watch=("h", "dh", "hhat", "dhhat")
    ),
    "layer-norm-ntk": lambda: run(tp.MLP(2, "relu", norm="layer"), "ntk", 1, watch=("h",)),
    "resnet": lambda: run(tp.ResNet(2, "relu"), "mup", 1, watch=("h", "dh")),
    "resnet-tanh-batch-2": lambda: run(tp.ResNet(2, "tanh"), "mup", 1, batch=2, watch=("h",)),
    "resnet-norm": lambda: run(tp.ResNet(2, "relu", norm="layer"), "mup", 1, watch=("h",)),
    "resnet-ntk": lambda: run(tp.ResNet(2, "tanh", alpha=1), "ntk", 1, watch=("h",)),
    "rnn": lambda: run(tp.RNN(2, "tanh"), "mup", 1, watch=("h", "dh")),
    "rnn-batch-2": lambda: run(tp.RNN(2, "erf", bias_variance=1), "mup", 1, batch=2, watch=("h",)),
    "rnn-ntk": lambda: run(tp.RNN(2, "relu"), "ntk", 1, watch=("h", "dx")),
}
