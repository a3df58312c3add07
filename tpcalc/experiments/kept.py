"""``digest_of``: what numbers that are kept belong to."""

from __future__ import annotations

import hashlib

from tpcalc.training.training import Training


def digest_of(run: Training, *more: object) -> str:
    """Of all that numbers of a run depend on, and of what else they do."""
    network = (run.network.smallest.digest, run.network.words, run.parameterization.text)
    routine = (run.optimizer.label, run.data, run.steps, run.batch, run.loss.name)
    said = (*network, *routine, run.lr, run.groups, run.factors, run.gammas, *more)
    return hashlib.sha256("\n".join(map(str, said)).encode()).hexdigest()[:16]
