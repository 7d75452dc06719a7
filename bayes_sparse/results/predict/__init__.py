"""Predictions from a tree."""
