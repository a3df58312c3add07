"""tpcalc: infinite-width limits of neural-network computations."""
__version__ = "0.1.0"
