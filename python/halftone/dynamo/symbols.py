"""Sizes of FX graphs as Halftone's expressions, which are texts on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy
import torch
from torch.utils._sympy import functions as torch_functions

if TYPE_CHECKING:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

#: Functions that `SymExpr::parse` reads under these names.
_FUNCTIONS = tuple(
    getattr(torch_functions, name)
    for name in ("FloorDiv", "CleanDiv", "Mod", "PythonMod", "Max", "Min")
    if hasattr(torch_functions, name)
)
_OPERATIONS = (sympy.Add, sympy.Mul, sympy.Max, sympy.Min)


def _is_readable(expression: sympy.Expr) -> bool:
    if expression.is_Integer:
        return True
    if expression.is_Symbol:
        return str(expression).isidentifier()
    if isinstance(expression, sympy.Pow):
        base, exponent = expression.args
        return bool(exponent.is_Integer and exponent >= 0) and _is_readable(base)
    return isinstance(expression, _OPERATIONS + _FUNCTIONS) and all(map(_is_readable, expression.args))


def try_size(size: int | torch.SymInt) -> int | str | None:
    """A number, the text of an expression, or None for what Halftone's expressions cannot say."""
    if not isinstance(size, torch.SymInt):
        return int(size)
    known = size.node.maybe_as_int()
    if known is not None:
        return known
    expression = size.node.expr
    return str(expression) if _is_readable(expression) else None


def try_sizes(sizes: Any) -> list[int | str] | None:
    """All of them, or None."""
    result = [try_size(size) for size in sizes]
    return None if any(size is None for size in result) else result


def symbols_of(value: Any) -> set[sympy.Symbol]:
    """The symbols in the sizes of a fake tensor, or of a number."""
    if isinstance(value, torch.SymInt):
        return set(value.node.expr.free_symbols)
    if isinstance(value, torch.Tensor) and value.layout == torch.strided:
        return set().union(*(symbols_of(size) for size in (*value.size(), *value.stride())))
    return set()


def range_of(shape_env: ShapeEnv, symbol: sympy.Symbol) -> tuple[int, int | None] | None:
    """The smallest and greatest value that dynamo's guards let through; None for the greatest: no limit."""
    known = shape_env.var_to_range.get(symbol)
    if known is None:
        return None
    lower = int(known.lower) if known.lower.is_Integer else 0
    upper = int(known.upper) if known.upper.is_Integer and known.upper < 2**62 else None
    return max(lower, 0), upper
