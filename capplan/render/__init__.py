"""Results as screens, tab-separated tables, JSON and plots. Sees results, nothing else."""
