"""Hand-made kernels: of eight inputs in three classes, of two sets, sampled, of several outputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tpcalc.results import Kernel, Method, Provenance

__all__ = ["BETWEEN", "KERNEL", "LABELS", "SAMPLED", "SEVERAL"]

MADE = Provenance("0.1.0", "ab12cd34", 0, (("method", "auto"),), (("numpy", "2.4.6"),), 0.25)
LABELS = ("1", "0", "10", "1", "0", "10", "1", "0")
_GAPS = abs(np.arange(8)[:, None] - np.arange(8)[None, :])
_NNGP = 2.0**-_GAPS + 0.25
_NTK = 3.0**-_GAPS + np.eye(8)

KERNEL = Kernel(
    nngp=_NNGP,
    ntk=_NTK,
    method=Method.EXACT,
    error=3.21e-15,
    coincident_error=4e-13,
    independent=True,
    notes=("Inputs: eight of them.",),
    symmetric=True,
    model="a relu network of 3 hidden layers, ntk",
    provenance=MADE,
    labels=LABELS,
)
SAMPLED = replace(
    KERNEL, method=Method.PARTICLES, error=2e-3, coincident_error=None, independent=False
)
BETWEEN = Kernel(_NNGP[:3, :5], None, Method.QUADRATURE, 1e-11, None, None, (), False, "rnn", MADE)
SEVERAL = Kernel(
    np.einsum("nm,kl->nkml", _NNGP[:3, :3], [[2.0, 1.0], [1.0, 2.0]]),
    None,
    Method.EXACT,
    0.0,
    None,
    None,
    (),
    True,
    "",
    MADE,
)
