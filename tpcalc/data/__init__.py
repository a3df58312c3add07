"""Data of a training run: bundled and local images, CSV files, inline numbers."""

from tpcalc.data.bundled import digits as digits
from tpcalc.data.bundled import digits_images as digits_images
from tpcalc.data.cifar import cifar10 as cifar10
from tpcalc.data.idx import mnist as mnist
from tpcalc.data.idx import read_idx as read_idx
from tpcalc.data.image_sets import images as images
from tpcalc.data.image_sets import mixture_images as mixture_images
from tpcalc.data.tables import csv as csv
from tpcalc.data.tables import inline as inline
from tpcalc.data.tables import queries as queries
