"""What cannot be read, and words that the message of it must contain."""

from __future__ import annotations

import copy
import itertools
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from modules.experts import IN, OUT, Branching, Hard
from modules.library import IDX, Encoder
from modules.rows import Row, floats, tokens


@dataclass(frozen=True)
class Bad(Row):
    """A family that is refused, or read with a note.

    Args:
        says: Words of the message.
        optimizer: Of a module at a width, where that is what is wrong.
        refused: Whether there is no answer; otherwise the words are those of a note.
        runs: A width at which torch runs it forward and backward, if there is one.
    """

    says: tuple[str, ...] = ()
    optimizer: Callable[[Any, int], Any] | None = None
    refused: bool = True
    runs: int | None = 64


class Net(nn.Module):
    """Three maps, and something done to the features between them."""

    def __init__(self, n: int, between: Callable[[Any, Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.n = n
        self.inp, self.hidden, self.out = nn.Linear(IN, n), nn.Linear(n, n), nn.Linear(n, OUT)
        self.between = between

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.inp(x))
        h = h if self.between is None else self.between(self, h)
        return self.out(torch.relu(self.hidden(h)))


# ------------------------------------------------------------------- operations over the width


def spectrum(net: Net, h: Tensor) -> Tensor:
    return torch.fft.rfft(h, n=2 * net.n - 1).real


def ordered(net: Net, h: Tensor) -> Tensor:
    return h.sort(dim=-1).values


def largest(net: Net, h: Tensor) -> Tensor:
    return h / h.amax(dim=-1, keepdim=True).clamp(min=1.0)


def attended(net: Net, h: Tensor) -> Tensor:
    return h * h.softmax(dim=-1)


def shorter(net: Net, h: Tensor) -> Tensor:
    """The power of the width in front of it is none: there is a logarithm."""
    return h / math.log(net.n)


def written(net: Net, h: Tensor) -> Tensor:
    h = h.clone()
    h[:, 0].fill_(1.0)  # one coordinate of a vector whose coordinates are alike
    return h


def overwritten(net: Net, h: Tensor) -> Tensor:
    with torch.no_grad():
        net.hidden.weight.mul_(0.99)
    return h


def deeper_when_wide(net: Net, h: Tensor) -> Tensor:
    return torch.relu(net.hidden(h)) if net.n > 100 else h


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g  # not the derivative


def custom(net: Net, h: Tensor) -> Tensor:
    return Twice.apply(h)


# ------------------------------------------------------------------------------ sizes and inits


class Sized(Net):
    """Its features are replaced by as many as ``size`` says."""

    def __init__(self, n: int, size: Callable[[int], int]) -> None:
        super().__init__(n)
        self.down, self.up = nn.Linear(n, size(n)), nn.Linear(size(n), n)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.relu(self.up(torch.relu(self.down(self.inp(x))))))


class Names(Net):
    """Two arguments that could be the width."""

    def __init__(self, d_model: int = 64, hidden_size: int = 64) -> None:
        super().__init__(d_model)
        self.hidden, self.out = nn.Linear(d_model, hidden_size), nn.Linear(hidden_size, OUT)


class Headed(nn.Module):
    def __init__(self, n: int, heads: int) -> None:
        super().__init__()
        self.inp, self.out = nn.Linear(IN, n), nn.Linear(n, OUT)
        self.attn = nn.MultiheadAttention(n, heads, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        h = self.inp(x)[None]
        return self.out(self.attn(h, h, h, need_weights=False)[0][0])


def started(n: int, init: Callable[[Net], Any]) -> nn.Module:
    """A network after an init of its own."""
    net = Net(n)
    with torch.no_grad():
        init(net)
    return net


def logarithmic(net: Net) -> None:
    net.hidden.weight.normal_(std=1 / math.log(net.n))


def few_entries(net: Net) -> None:
    net.out.bias.copy_(torch.rand(OUT) ** 3 * net.n**-0.5)


def equal_rows(net: Net) -> None:
    net.hidden.weight.copy_(torch.randn(net.n).expand(net.n, net.n))


def cyclic(net: Net) -> None:
    row = torch.randn(net.n) * net.n**-0.5
    net.hidden.weight.copy_(torch.stack([row.roll(k) for k in range(net.n)]))


class Alternating:
    """At each width one network and another by turns."""

    def __init__(self, *makes: Callable[[int], nn.Module]) -> None:
        self.turns: defaultdict[int, Any] = defaultdict(lambda: itertools.cycle(makes))

    def __call__(self, n: int) -> nn.Module:
        return next(self.turns[n])(n)


def wide_start(net: Net) -> None:
    net.hidden.weight.normal_(std=net.n**-0.25)


# ------------------------------------------------------------------- states, wrappers, outputs


class Averaged(Net):
    """Features less their running mean: a buffer that training moves."""

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.register_buffer("mean", torch.zeros(n))

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.inp(x))
        self.mean.mul_(0.9).add_(0.1 * h.detach().mean(0))
        return self.out(torch.relu(self.hidden(h - self.mean)))


class Dropped(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.out(F.dropout(torch.relu(self.inp(x)), 0.1, training=True))


class Cache:
    """A class that torch does not know."""

    def __init__(self, states: Tensor) -> None:
        self.states = states


class Cached(Net):
    def forward(self, x: Tensor) -> dict[str, Any]:
        h = torch.relu(self.inp(x))
        return {"logits": self.out(h), "cache": Cache(h)}


class Chosen(Net):
    """Its output is a class."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).argmax(-1)


def on_meta(n: int) -> nn.Module:
    with torch.device("meta"):
        return Net(n)


def orthogonal(n: int) -> nn.Module:
    net = Net(n)
    parametrizations.orthogonal(net.hidden)
    return net


def normed(n: int) -> nn.Module:
    return nn.Sequential(nn.Linear(IN, n), nn.BatchNorm1d(n), nn.ReLU(), nn.Linear(n, OUT)).eval()


def half(n: int) -> nn.Module:
    return nn.Sequential(nn.Embedding(24, n), nn.Linear(n, OUT)).bfloat16()


# ----------------------------------------------------------------------------------- optimizers


def some(model: Net, n: int) -> Any:
    return torch.optim.SGD([*model.inp.parameters(), *model.hidden.parameters()], lr=0.1)


def scheduler(model: Net, n: int) -> Any:
    return torch.optim.lr_scheduler.ConstantLR(torch.optim.SGD(model.parameters(), lr=0.1))


def closure(model: Net, n: int) -> Any:
    return torch.optim.LBFGS(model.parameters())


def of_a_copy(model: Net, n: int) -> Any:
    return torch.optim.SGD(copy.deepcopy(model).parameters(), lr=0.1)


def twice(model: Net, n: int) -> Any:
    return [torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.Adam(model.out.parameters())]


def logarithmic_rate(model: Net, n: int) -> Any:
    return torch.optim.SGD(model.parameters(), lr=1 / math.log(n))


def returns_nothing(model: Net, n: int) -> Any:
    torch.optim.SGD(model.parameters(), lr=0.1)


class Private(torch.optim.Optimizer):
    """A step that no text says."""

    def __init__(self, groups: Any) -> None:
        super().__init__(groups, {"lr": 0.1})

    def step(self) -> None:  # type: ignore[override]
        raise NotImplementedError


X = (floats(4, IN),)
NO_ANSWER = {
    "sort over the width": (ordered, ("sort", "width")),
    "maximum over the width": (largest, ("amax", "width")),
    "softmax over the width": (attended, ("softmax", "exponential moments", "another axis")),
    "Fourier transform": (spectrum, ("no rule", "fft")),
    "logarithm of the width": (shorter, ("aten.div", "logarithm of n")),
    "write through a view": (written, ("a cell", "average")),
    "parameter changed in forward": (overwritten, ("in-place", "hidden.weight")),
    "layers by the width": (deeper_when_wide, ("differ", "64", "128")),
    "autograd function": (custom, ("Twice", "autograd.Function")),
}
SIZES = {
    "size n^2": (lambda n: n * n // 64, ("down.weight", "rows")),
    "size sqrt(n)": (lambda n: math.isqrt(n), ("down.weight", "rows")),
    "size log(n)": (lambda n: n.bit_length(), ("down.weight", "rows")),
}
INITS = {
    "std 1/log(n)": (logarithmic, ("hidden.weight", "log")),
    "three entries": (few_entries, ("out.bias", "init=")),
    "equal rows": (equal_rows, ("hidden.weight", "init")),
    "circulant": (cyclic, ("hidden.weight", "init")),
}
RECIPES = {
    "scheduler": (scheduler, ("scheduler", "optimizer")),
    "closure": (closure, ("LBFGS", "closure")),
    "parameters of a copy": (of_a_copy, ("parameters", "model")),
    "a parameter in two optimizers": (twice, ("out.weight", "two")),
    "rate 1/log(n)": (logarithmic_rate, ("lr", "logarithm of n")),
    "no optimizer": (returns_nothing, ("None", "optimizer")),
    "own optimizer": (lambda model, n: Private(model.parameters()), ("Private",)),
}
BAD: tuple[Bad, ...] = (
    Bad("branch on data", Branching, X, says=("branches on data", "experts.py")),
    Bad("rows by a mask", Hard, X, says=("branches on data", "experts.py")),
    Bad("mask of the library", Encoder, IDX, says=("is_causal=True",)),
    *(Bad(name, partial(Net, between=op), X, says=words)
        for name, (op, words) in NO_ANSWER.items()),
    *(Bad(name, partial(Sized, size=size), X, says=words) for name, (size, words) in SIZES.items()),
    *(Bad(name, partial(started, init=init), X, says=words)
        for name, (init, words) in INITS.items()),
    *(Bad(name, Net, X, says=words, optimizer=made) for name, (made, words) in RECIPES.items()),
    Bad("width is nowhere", lambda n: Net(48), X, says=("width", "grow")),
    Bad("two arguments for the width", Names, X, says=("d_model", "hidden_size", "width"),
        runs=None),
    Bad("heads that do not divide", partial(Headed, heads=6), X, says=("num_heads", "96"), runs=96,
        refused=False),
    Bad("two builds, two networks", Alternating(Net, partial(Net, between=ordered)), X,
        says=("twice", "differ"), runs=None),
    Bad("two builds, two inits", Alternating(Net, partial(started, init=wide_start)), X,
        says=("hidden.weight", "differ"), runs=None),
    Bad("meta device", on_meta, X, says=("meta",), runs=None),
    Bad("compiled", lambda n: torch.compile(Net(n), backend="eager"), X, says=("compile",),
        refused=False),
    Bad("wrapped", lambda n: nn.DataParallel(Net(n)), X, says=("DataParallel", "module"),
        refused=False),
    Bad("bfloat16", half, (tokens(4, vocab=24),), says=("bfloat16", "float32"), refused=False),
    Bad("buffer that training moves", Averaged, X, says=("mean", "buffer")),
    Bad("orthogonal parametrization", orthogonal, X, says=("tril", "grows", "hidden")),
    Bad("output of an own class", Cached, X, says=("output", "Cache"), runs=None),
    Bad("output of no floats", Chosen, X, says=("output", "float"), runs=None),
    Bad("no module", lambda n: {"width": n}, X, says=("Module", "dict"), runs=None),
    Bad("nothing to train", lambda n: Net(n).requires_grad_(False), X, says=("trained",),
        runs=None),
    Bad("too few inputs", Net, (), says=("inputs", "forward"), runs=None),
    Bad("inputs of another size", Net, (floats(4, IN + 1),), says=("inputs", "inp"), runs=None),
    # Read, with a note.
    Bad("floor of a ratio", partial(Sized, size=lambda n: 8 * n // 3), X, refused=False,
        says=("down.weight", "8/3 n")),
    Bad("heads by division", lambda n: Headed(n, n // 16), X, refused=False,
        says=("heads grows", "16")),
    Bad("parameters without a group", Net, X, optimizer=some, refused=False,
        says=("without a group", "out.weight", "out.bias")),
    Bad("dropout", Dropped, X, refused=False, says=("dropout",)),
    Bad("batch norm in eval mode", normed, X, refused=False,
        says=("running statistics", "constants")),
)  # fmt: skip
