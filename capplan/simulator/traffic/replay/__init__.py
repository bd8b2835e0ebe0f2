"""Recorded requests: the formats in which people publish them, read as streams."""
