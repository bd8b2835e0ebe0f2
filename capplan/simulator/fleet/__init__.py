"""Clients, admission, router and replicas: everything around one replica's scheduler."""
