"""Plots: results -> charts, drawn in the terminal (plotext) and in files (matplotlib)."""
