"""Entry point of `capplan` and `python -m capplan`."""

from __future__ import annotations

import gc
import sys
from types import ModuleType


def without_plugins() -> None:
    """Let pydantic find no plugins: to look for them it imports `importlib.metadata`, and with it
    `email`, `zipfile` and `socket`, and reads the metadata of every package that is installed.

    That was a tenth of `capplan gpus --no-verify`. Where pydantic keeps its loader elsewhere, this
    does nothing.
    """
    loader = ModuleType("pydantic.plugin._loader")
    vars(loader)["get_plugins"] = tuple  # of nothing
    sys.modules[loader.__name__] = loader


def main() -> None:
    # A run is short and its imports make no garbage: looking for cycles among them, again and
    # again and once more at exit, would be a sixth of its time.
    gc.set_threshold(100_000)
    without_plugins()
    from capplan.cli.run import run

    code = run(sys.argv[1:])
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    main()
