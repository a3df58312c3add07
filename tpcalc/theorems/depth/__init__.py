"""Yang, Yu, Zhu, Hayou, Tensor Programs VI (2310.02244), sections 3 and 9.2, as functions.

The residual network of one neuron with linear blocks, from which the paper reads how learning rates
must depend on the depth; blocks that are linear in their updates. What the rest of the paper says
of wide networks is found by ``tp.check`` and ``tp.limit(..., depths=...)``.
"""

from tpcalc.arguments import all_public as _all_public
from tpcalc.theorems.depth.linearized import linearized as linearized
from tpcalc.theorems.depth.one_neuron import FirstUpdate as FirstUpdate
from tpcalc.theorems.depth.one_neuron import first_update as first_update
from tpcalc.theorems.depth.one_neuron import log_limit as log_limit

_all_public(globals())
