"""Predictions against measured runs."""
