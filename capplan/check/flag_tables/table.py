"""What one engine's command line knows, and how a written name finds its option."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class FlagTable:
    """Options by the engine's own names, in dashes and without the two at the front.

    ``meanings`` names what sizing asks of an option, alike for all engines: tp, pp, dp,
    max_model_len, max_num_seqs, max_num_batched_tokens, memory_share and so on.
    """

    engine: str
    values: frozenset[str]
    switches: frozenset[str] = frozenset()
    several: frozenset[str] = frozenset()  # take one value or more
    booleans: frozenset[str] = frozenset()  # also `--no-x`, and in old versions `--x=false`
    aliases: Mapping[str, str] = field(default_factory=dict)
    short: Mapping[str, str] = field(default_factory=dict)  # as written: `-tp`
    meanings: Mapping[str, str] = field(default_factory=dict)
    # Meaning -> the option that says the opposite: `disable-radix-cache` is prefix caching off.
    inverted: frozenset[str] = frozenset()
    abbreviates: bool = True  # as argparse does
    positional_model: bool = False

    def names(self) -> list[str]:
        return sorted({*self.values, *self.switches, *self.several, *self.booleans, *self.aliases})

    def find(self, written: str) -> tuple[str | None, bool, tuple[str, ...]]:
        """The option of a written name: its name, whether `no-` negates it, what else it could be.

        >>> values = frozenset({"max-num-seqs", "max-len"})
        >>> table = FlagTable("x", values, booleans=frozenset({"y"}))
        >>> table.find("max_num_seq"), table.find("no-y"), table.find("max")
        (('max-num-seqs', False, ()), ('y', True, ()), (None, False, ('max-len', 'max-num-seqs')))
        """
        name = written.replace("_", "-").split(".", 1)[0]
        if self._has(name):
            return self.aliases.get(name, name), False, ()
        if name.startswith("no-") and self._has(name[3:]):
            return self.aliases.get(name[3:], name[3:]), True, ()
        if not self.abbreviates or len(name) < 2:
            return None, False, ()
        fitting = sorted({self.aliases.get(n, n) for n in self.names() if n.startswith(name)})
        negated = sorted(f"no-{n}" for n in self.booleans if f"no-{n}".startswith(name))
        if len(fitting) + len(negated) == 1:
            if fitting:
                return fitting[0], False, ()
            return negated[0][3:], True, ()
        return None, False, tuple(fitting + negated)

    def _has(self, name: str) -> bool:
        return (
            name in self.values
            or name in self.switches
            or name in self.booleans
            or name in self.several
            or name in self.aliases
        )
