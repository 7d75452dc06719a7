"""NUTS: of a density given as a function (`density.py`), or of a `pm.Model` seen from an evidence fit (`model.py`)."""
