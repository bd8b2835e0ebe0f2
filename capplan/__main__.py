"""Entry point of `capplan` and `python -m capplan`."""

from __future__ import annotations

import sys

from capplan.cli.run import run


def main() -> None:
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
