"""Plain frozen records that carry answers, and their JSON."""

from tpcalc.results import checks as checks
from tpcalc.results.estimate import Estimate as Estimate
from tpcalc.results.estimate import Method as Method
from tpcalc.results.estimate import Status as Status
from tpcalc.results.kernel import Kernel as Kernel
from tpcalc.results.kernel import load_kernel as load_kernel
from tpcalc.results.orders import LayerFacts as LayerFacts
from tpcalc.results.orders import OrderRow as OrderRow
from tpcalc.results.orders import OrderTable as OrderTable
from tpcalc.results.orders import PhaseCell as PhaseCell
from tpcalc.results.orders import PhaseDiagram as PhaseDiagram
from tpcalc.results.orders import Solution as Solution
from tpcalc.results.orders import SolvedStep as SolvedStep
from tpcalc.results.orders import Verdict as Verdict
from tpcalc.results.samples import Samples as Samples
from tpcalc.results.tables import Comparison as Comparison
from tpcalc.results.tables import ComparisonRow as ComparisonRow
from tpcalc.results.tables import FiniteRow as FiniteRow
from tpcalc.results.tables import FiniteTable as FiniteTable
from tpcalc.results.tables import Formula as Formula
from tpcalc.results.tables import Key as Key
from tpcalc.results.tables import LimitTable as LimitTable
from tpcalc.results.tables import Provenance as Provenance
from tpcalc.results.tables import ScalarRow as ScalarRow
from tpcalc.results.tables import SlopeRow as SlopeRow
from tpcalc.results.tables import VectorRow as VectorRow
