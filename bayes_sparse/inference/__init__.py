"""The mathematics that methods share; no PyMC, pandas or xarray."""
