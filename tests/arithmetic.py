"""A calculator for the formulas that explanations print: nothing of ours is used."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable

_BINARY: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_CALLS: dict[str, Callable[..., float]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "min": min,
    "max": max,
}
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
# Printed to seven digits: a quotient this near to a whole number may be on its other side.
_NEAR = 1e-6


def evaluate(text: str) -> float:
    """`2 × (1,024 + 0.5)` as a number; anything but arithmetic is an error."""
    plain = _THOUSANDS.sub("", text).replace("×", "*")
    return _value(ast.parse(plain, mode="eval").body)


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_value(left), _value(right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            values = [_value(arg) for arg in args]
            if name in ("ceil", "floor") and abs(values[0] - round(values[0])) < _NEAR * values[0]:
                return float(round(values[0]))
            return float(_CALLS[name](*values))
    raise ValueError(ast.dump(node))
