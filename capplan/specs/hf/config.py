"""Typed access to the fields of one `config.json`, with faults that say where they stand."""

from __future__ import annotations

from typing import Any

from capplan.errors import CapplanError
from capplan.specs.documents import Document
from capplan.specs.fields import shown
from capplan.specs.model import MAX_LAYERS

DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_MOST_LISTED = 4


class Config:
    """The fields of a config, or of one that is nested in it (`text_config`)."""

    def __init__(
        self, document: Document, path: tuple[str | int, ...] = (), data: Any = None
    ) -> None:
        self.document = document
        self.path = path
        found = document.data if data is None else data
        if not isinstance(found, dict):
            where = document.locate(path)
            if path:
                raise CapplanError(f"`{path[-1]}` should be a mapping of fields", location=where)
            raise CapplanError("the file should be a JSON object", location=where)
        self.data: dict[str, Any] = found

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.data.get(name) is not None

    def fault(self, name: str, message: str, hint: str | None = None) -> CapplanError:
        return CapplanError(message, hint=hint, location=self.document.locate([*self.path, name]))

    def nested(self, name: str) -> Config:
        """A config within this one."""
        if not self.has(name):
            raise self.fault(name, f"`{name}` is missing")
        return Config(self.document, (*self.path, name), self.data[name])

    def with_defaults(self, **fields: Any) -> Config:
        """The same config, with what its class takes where a field is absent."""
        return Config(self.document, self.path, {**fields, **self.data})

    def with_values(self, **fields: Any) -> Config:
        """The same config with these values in place of its own."""
        return Config(self.document, self.path, {**self.data, **fields})

    def count(self, name: str, default: int | None = None, most: int = 10**9) -> int:
        """A whole number above zero; ``default`` where the field is absent or null."""
        value = self.data.get(name)
        if value is None:
            if default is not None:
                return default
            raise self.fault(name, f"`{name}` is missing")
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= most:
            wanted = f"a whole number from 1 to {most:,}"
            raise self.fault(name, f"`{name}` should be {wanted}, not {shown(value)}")
        return value

    def count_or_zero(self, name: str, default: int | None = None) -> int:
        """As `count`, zero allowed."""
        value = self.data.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value == 0:
            return 0
        return self.count(name, default) if value is not None or default != 0 else 0

    def num_layers(self, name: str = "num_hidden_layers") -> int:
        return self.count(name, most=MAX_LAYERS)

    def flag(self, name: str, default: bool) -> bool:
        """True or false; ``default`` where the field is absent or null."""
        value = self.data.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.fault(name, f"`{name}` should be true or false, not {shown(value)}")
        return value

    def words(self, name: str, num: int, *known: str) -> list[str]:
        """A list of ``num`` of the known words, one for each layer."""
        return [str(word) for word in self._list(name, num, known, str)]

    def bits(self, name: str, num: int) -> list[bool]:
        """A list of ``num`` zeros and ones, one for each layer."""
        return [bool(bit) for bit in self._list(name, num, (0, 1), int)]

    def _list(self, name: str, num: int, known: tuple[Any, ...], kind: type) -> list[Any]:
        values = self.data.get(name)
        if not isinstance(values, list) or len(values) != num:
            wanted = f"a list with an entry for each of {num:,} layers"
            got = f"one of {len(values):,}" if isinstance(values, list) else shown(values)
            raise self.fault(name, f"`{name}` should be {wanted}, not {got}")
        for value in values:
            if type(value) is not kind or value not in known:
                raise self.fault(name, f"`{name}`: {shown(value)} is not understood")
        return values

    def layer_numbers(self, name: str, num_layers: int) -> set[int]:
        """A list of layers by their numbers from 0; absent, null or empty: none."""
        values = self.data.get(name)
        if values is None:
            return set()
        if not isinstance(values, list) or not all(
            type(value) is int and 0 <= value < num_layers for value in values
        ):
            raise self.fault(name, f"`{name}` should be a list of numbers below {num_layers:,}")
        if len(set(values)) < len(values):
            raise self.fault(name, f"`{name}` names a layer twice")
        return set(values)

    def require(self, *names: str) -> None:
        """Refuse an absent field for which transformers has a default of its own, by class."""
        for name in names:
            if name not in self.data:
                hint = "transformers would take a default of this class; write it out"
                raise self.fault(name, f"`{name}` is missing", hint)

    def refuse(self, name: str, *harmless: Any, why: str = "is not read yet") -> None:
        """Refuse a setting that would change the sizes, unless it is absent or off."""
        value = self.data.get(name)
        # `is`: 0 == False, yet a config that says 0 where a flag belongs is not understood.
        if value is None or any(type(value) is type(h) and value == h for h in harmless):
            return
        raise self.fault(name, f"`{name}`: {shown(value)} {why}")

    def expect(self, name: str, value: Any) -> None:
        """Refuse a config that contradicts what follows from its other fields."""
        if self.has(name) and self.data[name] != value:
            given = shown(self.data[name])
            raise self.fault(name, f"`{name}` is {given}, yet the other fields make it {value}")

    def top_k(self, experts: str, *names: str) -> int:
        """Experts a token passes, under the first of the names that is there."""
        name = next((n for n in names if self.has(n)), names[0])
        num_experts, num = self.count(experts), self.count(name)
        if num > num_experts:
            raise self.fault(name, f"`{name}` {num:,} is above `{experts}` {num_experts:,}")
        return num
