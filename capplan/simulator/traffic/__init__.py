"""Who sends what, and when: arrivals, lengths, shared prefixes, conversations, recorded traces."""
