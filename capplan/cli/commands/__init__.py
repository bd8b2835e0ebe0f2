"""The commands: one function each, its options and its help; the rest is imported when it runs."""
