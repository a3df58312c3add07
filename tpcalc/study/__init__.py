"""Study files, flags and program files, read into programs with words about them."""

from tpcalc.study.build import build as build
from tpcalc.study.build import network_of as network_of
from tpcalc.study.load import Flag as Flag
from tpcalc.study.load import load as load
from tpcalc.study.load import study_of as study_of
from tpcalc.study.model import Model as Model
from tpcalc.study.model import Network as Network
from tpcalc.study.models import is_program as is_program
from tpcalc.study.models import open_model as open_model
from tpcalc.study.models import open_network as open_network
from tpcalc.study.program_file import load_named as load_named
from tpcalc.study.schema import Study as Study
