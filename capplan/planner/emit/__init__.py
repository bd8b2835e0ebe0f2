"""From a plan to how its servers are started, and from an answer to a plan."""
