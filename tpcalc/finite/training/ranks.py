"""How many directions the features of many images span, layer by layer."""

from __future__ import annotations

import math
from typing import Any

from tpcalc.engine.device.devices import free_memory, load_torch
from tpcalc.engine.memory import memory_text
from tpcalc.errors import Exploded, OutOfMemory
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.names import what_of

# Singular values below this, relative to the largest and times the width, count as zero.
_TOLERANCE = 1e-7


def rank(features: Any, width: int) -> int:
    """The rank of a matrix: singular values that are not below sigma_max * n * 1e-7.

    Source: Hajjar, Chizat, Giraud, section 6.3.
    """
    torch = load_torch()
    if not bool(torch.isfinite(features).all()):
        raise Exploded(
            "the features of an image are not finite, so they have no rank.",
            hint="Lower the learning rate.",
        )
    wide = features.to(torch.float64)
    largest = float(wide.abs().max())
    if largest == 0:
        return 0
    # A power of 2 changes no digit; without it squares of tiny features underflow.
    values = torch.linalg.svdvals(wide / 2.0 ** (math.frexp(largest)[1] - 1))
    return int((values >= values[0] * (width * _TOLERANCE)).sum())


def feature_ranks(
    network: DrawnNetwork, inputs: Any, memory_limit: int | None = None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ranks of the preactivations h^l and of the activations x^l of images, l = 1..L.

    Layers are computed one after the other, so that a few matrices of images times n are held.

    Source: Hajjar, Chizat, Giraud, section 6.3.
    """
    width = network.width
    need = 5 * 8 * len(inputs) * max(width, inputs.shape[1])
    limit = free_memory(network.device) // 2 if memory_limit is None else memory_limit
    if need > limit:
        raise OutOfMemory(
            f"the features of {len(inputs)} images at width {width} need {memory_text(need)}, and "
            f"{memory_text(limit)} may be used.",
            hint="Take the ranks over fewer images.",
        )
    names = [name for name in network.program.output if what_of(name) in ("h", "x")]
    wanted = {name: network.program.ref(name) for name in names}
    known = network.known(inputs.to(network.device, network.dtype))
    found = {ref: rank(value, width) for ref, value in network.walk(known, wanted.values())}
    of_h, of_x = (
        tuple(found[wanted[name]] for name in names if what_of(name) == what) for what in "hx"
    )
    return of_h, of_x
