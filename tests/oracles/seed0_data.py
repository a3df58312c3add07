"""The data that the acceptance cases of Hajjar, Chizat, Giraud share (spec 0, section 12)."""

from __future__ import annotations

import tpcalc as tp

XI0 = (0.6, -0.3, 0.5, 0.2)
XI1 = (0.1, 0.7, -0.2, 0.9)
XI2 = (0.5, 0.5, -0.6, -0.1)
XIO = (-0.2, 0.4, 0.3, 0.5)
K01 = 0.93  # xi0 . xi1 + 1: the first-layer bias is included
K00 = 1.74


def one_step(
    depth: int, act: str, parameterization: str, eta: float, **watch: object
) -> tp.Program:
    """One step on XI0 with chi = -1, outputs at XI0 (input 0) and XI1 (input 1)."""
    return tp.train(
        tp.MLP(depth, act, bias="first"),
        parameterization,
        tp.Samples((XI0,), ((0.0,),)),
        steps=1,
        lr=eta,
        loss="linear",
        queries=(XI1,),
        **watch,  # type: ignore[arg-type]
    )
