"""Marion, Fermanian, Biau, Vert, Scaling ResNets in the large-depth regime (2206.06929).

Its results as functions: assumptions with what is found of a network, bounds with their values and
apart from these their conditions, limits with their measured rates, and classes in the power of 1/L
in front of a block beside what the network's program gives.
"""

from tpcalc.arguments import all_public as _all_public
from tpcalc.theorems.resnets.bounds import corollary_4 as corollary_4
from tpcalc.theorems.resnets.bounds import least_depths as least_depths
from tpcalc.theorems.resnets.bounds import lemma_14 as lemma_14
from tpcalc.theorems.resnets.bounds import proposition_2 as proposition_2
from tpcalc.theorems.resnets.bounds import proposition_3 as proposition_3
from tpcalc.theorems.resnets.bounds import proposition_6 as proposition_6
from tpcalc.theorems.resnets.bounds import proposition_7 as proposition_7
from tpcalc.theorems.resnets.bounds import tail_of_the_norm as tail_of_the_norm
from tpcalc.theorems.resnets.case import assumptions as assumptions
from tpcalc.theorems.resnets.case import isometry as isometry
from tpcalc.theorems.resnets.classes import about_the_start as about_the_start
from tpcalc.theorems.resnets.classes import corollary_8 as corollary_8
from tpcalc.theorems.resnets.classes import hidden_states as hidden_states
from tpcalc.theorems.resnets.classes import proposition_12 as proposition_12
from tpcalc.theorems.resnets.classes import recommended_hurst as recommended_hurst
from tpcalc.theorems.resnets.critical import LogNormal as LogNormal
from tpcalc.theorems.resnets.critical import StrongError as StrongError
from tpcalc.theorems.resnets.critical import norm_ratio as norm_ratio
from tpcalc.theorems.resnets.critical import proposition_10 as proposition_10
from tpcalc.theorems.resnets.critical import sample_ratios as sample_ratios
from tpcalc.theorems.resnets.entries import Entries as Entries
from tpcalc.theorems.resnets.entries import cross_moment as cross_moment
from tpcalc.theorems.resnets.entries import entries_of as entries_of
from tpcalc.theorems.resnets.entries import lemma_15 as lemma_15
from tpcalc.theorems.resnets.entries import lemma_19 as lemma_19
from tpcalc.theorems.resnets.entries import lemma_20 as lemma_20
from tpcalc.theorems.resnets.entries import lemma_21 as lemma_21
from tpcalc.theorems.resnets.entries import moment_of_gaussian as moment_of_gaussian
from tpcalc.theorems.resnets.ode import EulerError as EulerError
from tpcalc.theorems.resnets.ode import PathRun as PathRun
from tpcalc.theorems.resnets.ode import growth_is_possible as growth_is_possible
from tpcalc.theorems.resnets.ode import proposition_11 as proposition_11
from tpcalc.theorems.resnets.ode import proposition_13 as proposition_13
from tpcalc.theorems.resnets.ode import rate_11 as rate_11
from tpcalc.theorems.resnets.ode import run_path as run_path

_all_public(globals())
