"""Residual networks of infinite width whose depth grows: training, at a depth and in the limit."""

from tpcalc.evaluate.depth.finite import Passes as Passes
from tpcalc.evaluate.depth.finite import finite as finite
from tpcalc.evaluate.depth.limit import Limit as Limit
from tpcalc.evaluate.depth.limit import limit as limit
from tpcalc.evaluate.depth.mean_field import mean_field as mean_field
from tpcalc.evaluate.depth.trunk import Trunk as Trunk
