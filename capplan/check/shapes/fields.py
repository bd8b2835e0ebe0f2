"""Fields of a manifest as values: variables filled in, numbers read."""

from __future__ import annotations

from capplan.check.deployment import Stated, parse_number
from capplan.check.launch import outside
from capplan.check.nodes import Node
from capplan.check.values import Scope, Value, fill_kubernetes, value_of


def plain_value(node: Node | None, scope: Scope) -> Value | None:
    """A scalar with variables filled in, or None where there is none."""
    if node is None or node.kind != "scalar" or node.is_null:
        return None
    return value_of(fill_kubernetes(node.text(), scope), scope)


def field_value(node: Node | None, scope: Scope) -> Value | None:
    """The same for a field that no shell sees: `${VAR}` is filled in before, or not at all."""
    value = plain_value(node, scope)
    return outside(value, scope) if value is not None else None


def stated(node: Node | None, scope: Scope) -> Stated | None:
    value = field_value(node, scope)
    return None if value is None else Stated(value, parse_number(value.word))
