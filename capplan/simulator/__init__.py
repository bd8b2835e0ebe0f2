"""One replica of the engine, step for step: scheduler, KV blocks, clock and records."""
