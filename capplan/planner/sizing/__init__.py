"""How many replicas: the highest rate that each kind sustains, by simulation."""
