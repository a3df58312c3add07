"""What the nonlinearity coefficient says of designs: blocks, rescalings, training, tables."""

from tpcalc.arguments import all_public as _all_public

_all_public(globals())
