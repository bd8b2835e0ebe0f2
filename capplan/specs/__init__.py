"""What a user writes down: accelerators, models, and where to find them."""
