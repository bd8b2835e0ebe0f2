"""From a question to an answer: bounds first; the simulator will prove them."""
