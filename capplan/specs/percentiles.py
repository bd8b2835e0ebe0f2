"""At which percentile limits hold where nobody says; apart, as a plan's schema is slow to load."""

DEFAULT_SLO_PERCENTILE = 99.0
