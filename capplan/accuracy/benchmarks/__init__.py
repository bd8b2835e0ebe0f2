"""What public benchmarks set and send, by their own scripts, and which rows are theirs."""
