"""A learning rate that grows from 0."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.schedule import RateSchedule

ENTRY = RateSchedule(
    "warmup",
    lambda share: share,
    text="grows linearly from 0 at its first step, t/k at step t of k; 1 behind it",
    source=Source(
        "Goyal et al., Accurate, large minibatch SGD: training ImageNet in 1 hour",
        "section 2.2 (gradual warmup)",
        "1706.02677",
    ),
    aliases=("warm-up",),
)
