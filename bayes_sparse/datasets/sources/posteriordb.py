"""Wide two-class sets of the horseshoe's field."""

from __future__ import annotations

from bayes_sparse.datasets.sources import Source

__all__ = ["ORIGINS", "SETS"]

SETS: dict[str, Source] = {
    "ovarian": Source(54, 1536, "01b571a84dcc2bd7cbd5e9d5cf918a2b16fe304417babe1ed6e9503efd9d496e"),
    "prostate": Source(102, 5966, "3c75e1c82afc62ecfe97ab15829fba202b80bdf5f7d438e837f02b5a315c542f"),
}

_HERE = "posteriordb (stan-dev/posteriordb, posterior_database/data/data), a zipped JSON file"

ORIGINS: dict[str, str] = {
    "ovarian": f"ovarian cancer microarrays, as in {_HERE}",
    "prostate": f"prostate cancer microarrays of Li et al. (ACM Computing Surveys 50, 2018), as in {_HERE}",
}
