"""Entry point of `capplan` and `python -m capplan`."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    # A run is short and its imports make no garbage: looking for cycles among them, again and
    # again and once more at exit, would be a sixth of its time.
    gc.set_threshold(100_000)
    from capplan.cli.run import run

    code = run(sys.argv[1:])
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    main()
