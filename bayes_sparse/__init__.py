"""Sparse Bayesian learning for people who use PyMC."""
