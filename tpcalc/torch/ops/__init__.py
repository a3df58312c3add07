"""Operations of torch: what they are made of, a file for each kind."""

from __future__ import annotations

from tpcalc.torch.ops import attention as attention
from tpcalc.torch.ops import contractions as contractions
from tpcalc.torch.ops import elementwise as elementwise
from tpcalc.torch.ops import indexing as indexing
from tpcalc.torch.ops import recurrent as recurrent
from tpcalc.torch.ops import reductions as reductions
