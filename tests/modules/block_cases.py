"""Recipes of transformers, of networks with batch norm, and of a recurrent network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from modules.case import Case, Power, rates
from modules.parametrized import LENGTH, VOCAB, ConvNet, Recurrent, Transformer
from modules.rows import floats, tokens

HIDDEN, SCORES = ("v.weight", "o.weight", "up.weight", "dn.weight"), ("q.weight", "k.weight")
HEAD = ("head.weight",)
IDX = (tokens(2, LENGTH, vocab=VOCAB),)
EMBEDDINGS, BLOCK_NORMS = ("emb.weight", "pos.weight"), ("ln1", "ln2")


def role(name: str) -> int:
    """0: a vector, 1: a matrix between widths, 2: the readout."""
    return 2 if name in HEAD else 1 if name in HIDDEN + SCORES else 0


def by_role(
    kind: Callable[..., Optimizer], c: Sequence[float], **how: Any
) -> Callable[[nn.Module, int], Optimizer]:
    """An optimizer with rates for vectors, for matrices between widths, and for the readout."""

    def optimizer(model: nn.Module, n: int) -> Optimizer:
        named = dict(model.named_parameters())
        return kind(rates(named.values(), n, [c[role(name)] for name in named]), **how)

    return optimizer


def by_kind(
    hidden: Power, scores: Power, embeddings: Power, head: Power | None, **single: Power
) -> dict[str, Power]:
    """An exponent for every parameter: a norm has that of embeddings if none is said."""
    made: dict[str, Power] = dict.fromkeys(HIDDEN, hidden) | dict.fromkeys(SCORES, scores)
    made |= dict.fromkeys(EMBEDDINGS, embeddings)
    made |= {} if head is None else dict.fromkeys(HEAD, head)
    norms = {norm: single.pop(norm, embeddings) for norm in (*BLOCK_NORMS, "ln")}
    made |= {f"{norm}.{part}": p for norm, p in norms.items() for part in ("weight", "bias")}
    return made | {f"{name}.weight": p for name, p in single.items()}


def gpt(
    name: str, verdict: str, output: Mapping[str, Power], also: Mapping[str, Power],
    optimizer: Callable[[nn.Module, int], Optimizer], update: Mapping[str, Power] | None = None,
    later: Mapping[str, Power] | None = None, **network: Any,
) -> Case:  # fmt: skip
    names = dict(Transformer(32, **network).named_parameters())
    return Case(
        name, partial(Transformer, **network), IDX, optimizer=optimizer, verdict=verdict,
        update={key: power for key, power in (update or {}).items() if key in names},
        output={key: power for key, power in output.items() if key in names}, also=also,
        later={key: power for key, power in (later or {}).items() if output[key] != power},
    )  # fmt: skip


MUP, ONE_RATE, OVER_N = by_role(Adam, (0, 1, 0)), by_role(Adam, (0, 0, 0)), by_role(Adam, (1, 1, 1))
MAXIMAL, LATER = by_kind(0, -0.5, 0, 0), dict.fromkeys(SCORES, 0)
SP = {"score": 0.5, "head": 0.5, "multiplier": 0}
# Of what softmax cannot cut off: its scores are n^1.
SATURATED = dict.fromkeys(HIDDEN, 0.5) | dict.fromkeys(("head.weight", "ln.weight", "ln.bias"), 0)
ZEROS = by_kind(0, 0, 0, 1)  # updates; of a tied matrix that of the embedding
GPTS = (
    gpt("24", "maximal", MAXIMAL, {"score": -0.5, "score change": 0, "f": -0.5}, MUP, ZEROS,
        LATER),
    gpt("25", "attention logits explode", by_kind(0, 0, 0, 0), {"score": 0, "score change": 0.5},
        MUP, ZEROS, score=0.5),
    gpt("26", "maximal", by_kind(0, 0, 0, 0), {"score": 0, "score change": 0, "f": -0.5}, MUP,
        ZEROS, score=0.5, size=32),
    gpt("27", "explodes", by_kind(1.5, 1.5, 0.5, 1), {"score": 0, "score change": 1.5, "f": 0},
        ONE_RATE, by_kind(1, 1, 0, 1), **SP),
    gpt("28", "embedding and norms frozen, readout explodes", by_kind(0.5, 0.5, -0.5, 0),
        {"score": 0, "score change": 0.5, "df": 0.5}, OVER_N, by_kind(0, 0, -1, 0), **SP),
    gpt("29", "explodes", by_kind(1, 0.5, 0, 0), {"score change": 1}, ONE_RATE,
        by_kind(1, 1, 0, 1), dict.fromkeys(SCORES, 1)),
    gpt("30", "explodes at the start", SATURATED, {"score": 1, "f": 0.5}, OVER_N,
        {"o.weight": 0.5, "dn.weight": 0.5}, score=0.5, hidden=0, multiplier=0),
    gpt("31", "readout explodes", by_kind(0.5, 0, 0.5, 0.5), {"f": 0, "df": 0.5}, MUP, ZEROS,
        LATER | dict.fromkeys(SCORES, 0.5), multiplier=0.5),
    gpt("32", "maximal", by_kind(0, -0.5, 0, None), {"f": 0}, MUP, by_kind(0, 0, 0, None), LATER,
        tied=True),
    gpt("33", "embedding explodes at the start and is lazy",
        by_kind(0, -0.5, 0, None, ln=0.5), {"f": 0.5}, MUP, by_kind(0, 0, 0, None), LATER,
        tied=True, emb=-0.5),
    gpt("34", "explodes at the start", by_kind(1, 0.5, 1, None), {"f": 1, "readout update": 1},
        MUP, by_kind(0, 0, 0, None), dict.fromkeys(SCORES, 1), tied=True, multiplier=0),
    gpt("35", "maximal", by_kind(0, -1, 0, 0), {"score change": -0.5},
        by_role(SGD, (-1, 0, -1)), by_kind(0, -0.5, 0, 1), LATER),
    gpt("36", "eps decides first for queries and keys", MAXIMAL,
        {"gradient of q.weight": -1.5, "gradient of emb.weight": -1}, MUP, ZEROS, LATER),
)  # fmt: skip

# Heads of size 8, their number growing; those of keys and values fixed.
GROUPED = {"size": 8, "score": 0.5, "norm": nn.RMSNorm}
WELL, SUM = by_kind(0, 0, 0, 0), {"k.weight": -0.5, "v.weight": -0.5}
FEW = "attention output grows: keys and values are readouts"
HULL: Power = (0, 0.5)
GROUPS = (
    gpt("A1", "maximal", WELL, {"score change": 0, "attention change": 0, "df": 0}, MUP, ZEROS,
        **GROUPED),
    gpt("A2", FEW, WELL | SUM, {"score change": HULL, "attention change": HULL, "df": 0}, MUP,
        ZEROS, WELL, key_heads=2, **GROUPED),
    gpt("A3", "maximal", by_kind(0, -1, 0, 0, ln1=-0.5, v=-0.5, o=-0.5),
        {"attention change": 0, "df": 0}, MUP, ZEROS | {"o.weight": -0.5}, WELL,
        key_heads=2, keys=1, **GROUPED),
    gpt("A4", FEW, WELL | SUM, {"score change": HULL, "attention change": HULL, "df": 0}, MUP,
        ZEROS, WELL, key_heads=1, **GROUPED),
)  # fmt: skip

# ----------------------------------------------------------- batch norm, and a matrix used again


def listed(
    network: type[nn.Module], reads: Tensor, name: str, verdict: str,
    kind: Callable[..., Optimizer], c: Sequence[float], output: Sequence[Power],
    update: Sequence[Power], also: Mapping[str, Power] | None = None, **how: Any,
) -> Case:  # fmt: skip
    """A case with rates and exponents in the order of the parameters."""
    names = [name for name, _ in network(8).named_parameters()]
    return Case(
        name, partial(network, **how), (reads,), verdict=verdict, also=also or {},
        optimizer=lambda model, n: kind(rates(model.parameters(), n, c)),
        output=dict(zip(names, output, strict=True)),
        update=dict(zip(names, update, strict=True)),
    )  # fmt: skip


conv = partial(listed, ConvNet, floats(4, 3, 6, 6))
recurrent = partial(listed, Recurrent, floats(8, 4, 5))
SGD_RATES, ADAM_RATES = (-1, -1, -1, 0, -1, -1, 1), (0, 0, 0, 1, 0, 0, 1)
NOUGHT, NONE, LAZY = (
    (0,) * 7,
    [(0, 0, 0)] * 2,
    "hidden convolution lazy through the scale-free norm",
)
OTHERS = (
    conv("37", "explodes", SGD, NOUGHT, (0, 0, 0, 1, 0, 0, 1),
        (-0.5, -0.5, -0.5, 0.5, -0.5, -0.5, 1), head=0.5),
    conv("38", "maximal", SGD, SGD_RATES, NOUGHT, NOUGHT),
    conv("39", "maximal", Adam, ADAM_RATES, NOUGHT, NOUGHT),
    conv("40", LAZY, Adam, ADAM_RATES, (0, 0, 0, -0.5, 0, 0, 0), NOUGHT,
        {"conv2": 0.5, "df": (-0.5, 0)}, hidden=0),
    conv("41", LAZY, SGD, SGD_RATES, (0, 0, 0, -1, 0, 0, 0), (0, 0, 0, -0.5, 0, 0, 0),
        {"conv2": 0.5}, hidden=0),
    recurrent("42 adam", "maximal", Adam, (0, 1, 1), *NONE, {"gradient of w.weight": -1}),
    recurrent("42 sgd", "maximal", SGD, (-1, 0, 1), *NONE, {"gradient of w.weight": -1}),
    recurrent("43", "explodes", Adam, (0, 0, 0), (0.5, 1.5, 1), (0, 1, 1), {"df": 1.5}, head=0.5),
)  # fmt: skip
