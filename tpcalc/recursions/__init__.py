"""Residual networks of infinite width along their depth: closed recursions, and their limit."""

from tpcalc.recursions.finite import Passes as Passes
from tpcalc.recursions.finite import finite as finite
from tpcalc.recursions.limit import Limit as Limit
from tpcalc.recursions.limit import limit as limit
from tpcalc.recursions.mean_field import mean_field as mean_field
from tpcalc.recursions.trunk import Trunk as Trunk
