"""What a family's reader returns, and how it becomes the fields of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Part = dict[str, Any]
Layer = tuple[str | None, str | None]
_LONGEST_PATTERN = 64


@dataclass
class Stack:
    """Mixers and ffns by name, the layers in stacking order, and what differs from a default.

    ``fields`` are fields of the model's file: they stand instead of what the config's common
    fields say (`tied_embeddings`, `max_context_tokens`) or beside it (`norm`).
    """

    mixers: dict[str, Part]
    ffns: dict[str, Part]
    layers: list[Layer]
    fields: dict[str, Any] = field(default_factory=dict)
    # The prediction layers of the checkpoint, by mixer and ffn, and what else one of them holds.
    mtp: list[Layer] = field(default_factory=list)
    mtp_extra: int = 0
    # Module names that differ from most families', for lists of what is (not) quantised.
    modules: dict[str, str] = field(default_factory=dict)
    dtype: str | None = None  # of a family whose configs do not say it
    tied_by_default: bool = False  # where `tie_word_embeddings` is absent

    def spec(self) -> dict[str, Any]:
        """The fields that the stack gives; kinds that no layer uses are left out."""
        mixers = {mixer for mixer, _ in self.layers}
        ffns = {ffn for _, ffn in self.layers}
        return {
            "mixers": {name: part for name, part in self.mixers.items() if name in mixers},
            "ffns": {name: part for name, part in self.ffns.items() if name in ffns},
            "layers": runs_of(self.layers),
            **self.fields,
        }


def uniform(mixer: Part, ffn: Part, num_layers: int, **fields: Any) -> Stack:
    """A stack of one kind of layer."""
    layers: list[Layer] = [("attention", "ffn")] * num_layers
    return Stack({"attention": mixer}, {"ffn": ffn}, layers, fields)


def runs_of(layers: list[Layer]) -> list[dict[str, Any]]:
    """The shortest description in runs and repeated patterns.

    >>> runs_of([("a", "f"), ("a", "f"), ("b", "f")] * 2)[0]["repeat"]
    2
    """
    found: list[dict[str, Any]] = []
    at = 0
    while at < len(layers):
        period, repeats = _pattern_at(layers, at)
        found.append(_run(layers[at : at + period], repeats))
        at += period * repeats
    return found


def _pattern_at(layers: list[Layer], at: int) -> tuple[int, int]:
    """The (period, repeats) that cover most layers from ``at`` on; the shortest of equal ones.

    A run of equal layers gives way to a pattern only when that covers more than the pattern
    twice, so that `dense x 3, moe x 58` stays as people write it.
    """
    best = (1, _repeats(layers, at, 1))
    if best[1] == len(layers) - at:
        return best
    for period in range(2, min(_LONGEST_PATTERN, (len(layers) - at) // 2) + 1):
        repeats = _repeats(layers, at, period)
        if repeats > 1 and period * repeats > best[0] * best[1]:
            best = (period, repeats)
    return best


def _repeats(layers: list[Layer], at: int, period: int) -> int:
    pattern = layers[at : at + period]
    num = 1
    while layers[at + num * period : at + (num + 1) * period] == pattern:
        num += 1
    return num


def _run(pattern: list[Layer], repeats: int) -> dict[str, Any]:
    repeat = {"repeat": repeats} if repeats > 1 else {}
    if len(pattern) == 1:
        mixer, ffn = pattern[0]
        names = {"mixer": mixer, "ffn": ffn}
        return {**repeat, **{key: name for key, name in names.items() if name}}
    return {**repeat, "pattern": runs_of(pattern)}
