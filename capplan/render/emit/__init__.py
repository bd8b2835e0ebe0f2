"""Manifests and command lines of a launch."""
