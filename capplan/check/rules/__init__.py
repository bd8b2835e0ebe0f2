"""The rules: one small function each."""
