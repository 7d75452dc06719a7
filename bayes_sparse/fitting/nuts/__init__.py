"""NUTS of a density given as a function (`density`), or of a `pm.Model` seen from an evidence fit (`declaration`).

`start` is what such a fit tells a sampler; `sample` makes the third and the fourth rung of them.
"""
