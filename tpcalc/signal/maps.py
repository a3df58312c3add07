"""What one layer does: curves of lengths and correlations, edges of chaos, shared biases."""

from tpcalc.arguments import all_public as _all_public
from tpcalc.meanfield.maps.curves import correlation_curve as correlation_curve
from tpcalc.meanfield.maps.curves import correlations as correlations
from tpcalc.meanfield.maps.curves import edge_curve as edge_curve
from tpcalc.meanfield.maps.curves import length_curve as length_curve
from tpcalc.meanfield.maps.curves import lengths as lengths
from tpcalc.meanfield.maps.curves import scale_curve as scale_curve
from tpcalc.meanfield.maps.layer_map import edges as edges
from tpcalc.meanfield.maps.layer_map import low_rank_start as low_rank_start
from tpcalc.meanfield.maps.shared_bias import shared_bias_length as shared_bias_length
from tpcalc.meanfield.maps.shared_bias import shared_bias_lengths as shared_bias_lengths

_all_public(globals())
