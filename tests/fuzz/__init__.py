"""Fits of everything to nasty data, by number: each ends in finite numbers or in one sentence of ours."""
