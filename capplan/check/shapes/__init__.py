"""One module a kind of deployment."""
