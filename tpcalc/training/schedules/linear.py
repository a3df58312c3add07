"""A learning rate that falls linearly."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.schedule import RateSchedule

ENTRY = RateSchedule(
    "linear",
    lambda share: 1 - share,
    text="falls linearly, 1 - t/k at step t of k; 0 behind it",
    source=Source(
        "Devlin, Chang, Lee, Toutanova, BERT: pre-training of deep bidirectional transformers",
        "appendix A.2 (linear decay of the learning rate)",
        "1810.04805",
    ),
)
