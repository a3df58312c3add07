"""What the nonlinearity coefficient says of designs: blocks, rescalings, training, tables."""

from tpcalc.arguments import all_public as _all_public
from tpcalc.practice.rewrites import norm_first as norm_first
from tpcalc.practice.rewrites import orthogonal as orthogonal
from tpcalc.practice.rewrites import retune as retune
from tpcalc.practice.rewrites import rewritten as rewritten
from tpcalc.practice.rewrites import scale_weights as scale_weights
from tpcalc.practice.rewrites import swap as swap

_all_public(globals())
