"""The options of each engine: which take a value, which switch, and what they mean to us."""
