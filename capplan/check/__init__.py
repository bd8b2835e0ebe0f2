"""Reading deployments as teams write them, and judging their sizing."""
