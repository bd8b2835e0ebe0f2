"""Specs meet formulas here: a batch, given as sums, becomes the time of one engine step."""
