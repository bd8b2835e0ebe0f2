"""Which capplan this is."""

from __future__ import annotations


def installed_version() -> str | None:
    """None where it runs from a checkout and is not installed."""
    from importlib.metadata import PackageNotFoundError, version  # few answers say it

    try:
        return version("capplan")
    except PackageNotFoundError:
        return None
