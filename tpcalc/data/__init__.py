"""Data of a training run: the bundled digits, CSV files, inline numbers."""

from tpcalc.data.arrays import inline as inline
from tpcalc.data.bundled import digits as digits
from tpcalc.data.tables import csv as csv
from tpcalc.data.tables import queries as queries
