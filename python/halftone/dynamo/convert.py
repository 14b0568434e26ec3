"""FX graphs of ATen operators as Halftone's graphs."""

from __future__ import annotations

import dataclasses
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule as FxModule
from torch.fx import Node as FxNode

from halftone import _C

from .symbols import range_of, symbols_of, try_size, try_sizes


class ConversionError(Exception):
    """Why a graph cannot be Halftone's; the message names the node."""


@dataclasses.dataclass(frozen=True)
class InputSource:
    """Where a placeholder comes from."""

    #: Qualified name, as in ``state_dict()``, or the argument's name.
    name: str
    #: A parameter or buffer of a module: its content may be compiled in.
    kind: str = "user"


#: What Python does to sizes, as Halftone's built-ins.
_NUMBER_FUNCTIONS: dict[Any, str] = {
    operator.add: "sym::add",
    operator.sub: "sym::sub",
    operator.mul: "sym::mul",
    operator.floordiv: "sym::floordiv",
    operator.truediv: "sym::truediv",
    operator.mod: "sym::mod",
    operator.pow: "sym::pow",
    operator.neg: "sym::neg",
    operator.pos: "sym::pos",
    operator.abs: "sym::abs",
    abs: "sym::abs",
    operator.eq: "sym::eq",
    operator.ne: "sym::ne",
    operator.lt: "sym::lt",
    operator.le: "sym::le",
    operator.gt: "sym::gt",
    operator.ge: "sym::ge",
    operator.and_: "sym::and",
    operator.or_: "sym::or",
    operator.lshift: "sym::lshift",
    operator.rshift: "sym::rshift",
    math.trunc: "sym::trunc",
    math.floor: "sym::floor",
    math.ceil: "sym::ceil",
    round: "sym::round",
    torch.sym_max: "sym::max",
    torch.sym_min: "sym::min",
    torch.sym_sum: "sym::sum",
    torch.sym_not: "sym::not",
    torch.sym_ite: "sym::ite",
    torch.sym_int: "sym::int",
    torch.sym_float: "sym::float",
    torch._sym_sqrt: "sym::sqrt",
    torch._sym_log2: "sym::log2",
}

#: Switches of modes that say nothing where no gradients are computed.
_IGNORED = (torch._C._set_grad_enabled,)

#: They give the tensor itself where there are no gradients.
_SAME_TENSOR = (torch.ops.aten.detach_.default, torch.ops.aten.requires_grad_.default)

_CONTROL_FLOW = {"cond": "builtin::cond", "while_loop": "builtin::while_loop", "map_impl": "builtin::map",
                 "scan": "builtin::scan"}  # fmt: skip

_NO_VALUE: Any = object()


def target_of(op: torch._ops.OpOverload) -> str:
    """The operator's name in Halftone's graphs: ``aten::add.Tensor``, ``aten::linear``."""
    if op is torch.ops.aten.item.default:
        return "aten::_local_scalar_dense"  # the same; item() asks for data where only sizes are looked for
    schema = op._schema
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name


def spec_of(name: str, value: Any) -> tuple[Any, ...]:
    """(name, type, dtype, sizes, strides, expression) of a traced value."""
    if isinstance(value, torch.Tensor):
        sizes = try_sizes(value.size())
        if sizes is None:
            return (name, "tensor", None, None, None, None)
        strides = try_sizes(value.stride())
        return (name, "tensor", value.dtype, sizes, strides, None)
    if isinstance(value, (bool, torch.SymBool)):
        return (name, "bool", None, None, None, None)
    if isinstance(value, (int, torch.SymInt)):
        return (name, "int", None, None, None, try_size(value))
    if isinstance(value, (float, torch.SymFloat)):
        return (name, "float", None, None, None, None)
    if value is None:
        return (name, "none", None, None, None, None)
    if isinstance(value, str):
        return (name, "str", None, None, None, None)
    raise ConversionError(f"{name} is of type {type(value).__name__}")


def check_tensor(name: str, value: Any) -> None:
    """Halftone computes on dense tensors of the CPU."""
    if not isinstance(value, torch.Tensor):
        return
    if value.device.type != "cpu":
        raise ConversionError(f"{name} is on device {value.device}; Halftone runs on the CPU")
    if value.layout != torch.strided:
        raise ConversionError(f"{name} has the layout {value.layout}")
    if value.is_quantized:
        raise ConversionError(f"{name} has the quantized type {value.dtype}")


def layer_of(node: FxNode) -> tuple[str, str]:
    """The innermost module that the node comes from: its name and type."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return "", ""
    path, module_type = list(stack.values())[-1]
    name = module_type if isinstance(module_type, str) else f"{module_type.__module__}.{module_type.__qualname__}"
    return module_name(path), name


def module_name(path: str) -> str:
    """``L['self']._modules['fc'].weight`` as ``fc.weight``."""
    path = re.sub(r"^L\[['\"]\w+['\"]\]", "", path)  # the local variable that holds the model
    for bracket in ("_modules", "_parameters", "_buffers"):
        path = path.replace(f".{bracket}['", ".")
    path = path.replace("['", ".").replace("']", "").replace("[", ".").replace("]", "")
    return path.split("@")[0].strip(".")


class Converter:
    """One FX graph. ``frozen``: tensors of placeholders by position; those become parameters and buffers."""

    def __init__(
        self,
        module: FxModule,
        name: str,
        sources: Sequence[InputSource] | None = None,
        frozen: dict[int, torch.Tensor] | None = None,
    ) -> None:
        self.module = module
        self.builder = _C.GraphBuilder(name)
        self.sources = sources
        self.frozen = frozen or {}
        self.values: dict[FxNode, Any] = {}
        self.names: set[str] = set()

    def convert(self) -> _C.GraphModule:
        """The finished graph. Outputs are flat."""
        self._nodes()
        self._ranges()
        return self.builder.finish()

    def subgraph(self) -> _C.Subgraph:
        """The same as a body of control flow."""
        self._nodes()
        return self.builder.subgraph()

    def _nodes(self) -> None:
        position = 0
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node, position)
                position += 1
            elif node.op == "get_attr":
                self._attribute(node)
            elif node.op == "call_function":
                self._call(node)
            elif node.op == "output":
                self._output(node)
            else:
                raise ConversionError(f"{node.name} is a {node.op}; graphs of ATen operators have none")

    def _unique(self, name: str) -> str:
        unique, count = name or "input", 1
        while unique in self.names:
            count += 1
            unique = f"{name}_{count}"
        self.names.add(unique)
        return unique

    def _placeholder(self, node: FxNode, position: int) -> None:
        source = self.sources[position] if self.sources else InputSource(node.name)
        tensor = self.frozen.get(position)
        value = node.meta.get("val") if tensor is None else tensor
        check_tensor(source.name, value)
        kind = "user" if tensor is None else source.kind
        target = self._unique(node.name if kind == "user" else source.name)
        self.values[node] = self.builder.add_input(spec_of(node.name, value), kind, target, tensor)

    def _attribute(self, node: FxNode) -> None:
        value: Any = self.module
        for step in str(node.target).split("."):
            value = getattr(value, step)
        if isinstance(value, FxModule):
            self.values[node] = value  # a body of control flow
            return
        if not isinstance(value, torch.Tensor):
            raise ConversionError(f"{node.name} is a constant of type {type(value).__name__}")
        if isinstance(value, torch._subclasses.FakeTensor):
            raise ConversionError(f"{node.name} is a constant without data")
        check_tensor(node.name, value)
        target = self._unique(str(node.target))
        value = value.detach()
        self.values[node] = self.builder.add_input(spec_of(node.name, value), "constant", target, value)

    def _ranges(self) -> None:
        done = set()
        for node in self.module.graph.find_nodes(op="placeholder"):
            value = node.meta.get("val")
            sizes = [value] if isinstance(value, torch.SymInt) else list(getattr(value, "shape", ()))
            env = next((size.node.shape_env for size in sizes if isinstance(size, torch.SymInt)), None)
            for symbol in symbols_of(value) - done if env is not None else ():
                done.add(symbol)
                limits = range_of(env, symbol)
                if limits is not None:
                    self.builder.set_range(str(symbol), *limits)

    def _operand(self, node: FxNode, argument: Any) -> Any:
        if isinstance(argument, FxNode):
            value = self.values.get(argument, _NO_VALUE)
            if value is _NO_VALUE or isinstance(value, (list, FxModule)):
                raise ConversionError(f"{node.name} uses {argument.name}, which is no single value")
            return value
        if isinstance(argument, (list, tuple)):
            return [self._operand(node, item) for item in argument]
        if isinstance(argument, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise ConversionError(f"{node.name} takes the size {argument}, which no node computes")
        if isinstance(argument, torch.Generator):
            raise ConversionError(f"{node.name} takes a generator of random numbers of its own")
        if isinstance(argument, slice) or callable(argument) and not isinstance(argument, torch.dtype):
            raise ConversionError(f"{node.name} takes an operand of type {type(argument).__name__}")
        return argument

    def _call(self, node: FxNode) -> None:
        target: Any = node.target
        if target in _SAME_TENSOR:
            self.values[node] = self._operand(node, node.args[0])
        elif isinstance(target, torch._ops.OpOverload):
            self._operator(node, target)
        elif target is operator.getitem:
            self._getitem(node)
        elif target in _NUMBER_FUNCTIONS:
            operands = [("", self._operand(node, argument)) for argument in node.args]
            spec = spec_of(node.name, node.meta.get("val"))
            (self.values[node],) = self.builder.append(_NUMBER_FUNCTIONS[target], operands, [spec], *layer_of(node))
        elif isinstance(target, torch._ops.HigherOrderOperator):
            self._control_flow(node, target)
        elif target not in _IGNORED:
            raise ConversionError(f"{node.name} calls {torch.typename(target)}, which is no operator of ATen")

    def _operator(self, node: FxNode, op: torch._ops.OpOverload) -> None:
        schema = op._schema
        names = [argument.name for argument in schema.arguments]
        operands = [(name, self._operand(node, value)) for name, value in zip(names, node.args, strict=False)]
        operands += [(name, self._operand(node, value)) for name, value in node.kwargs.items()]
        value = node.meta.get("val")
        returns = schema.returns
        layer = layer_of(node)
        if len(returns) == 1 and str(returns[0].type) == "List[Tensor]":
            (made,) = self.builder.append(target_of(op), operands, [(f"{node.name}_list", "list", *[None] * 4)], *layer)
            self._unpack(node, made, value, layer)
            return
        values = [] if not returns else [value] if len(returns) == 1 else list(value)
        specs = [spec_of(node.name if len(values) == 1 else f"{node.name}_{i}", v) for i, v in enumerate(values)]
        for name, each in zip((node.name for _ in values), values, strict=True):
            check_tensor(name, each)
        made = self.builder.append(target_of(op), operands, specs, *layer)
        self.values[node] = made[0] if len(returns) == 1 else made

    def _unpack(self, node: FxNode, made: Any, value: Any, layer: tuple[str, str]) -> None:
        if not isinstance(value, (list, tuple)):
            raise ConversionError(f"{node.name} gives a list of unknown length")
        specs = [spec_of(f"{node.name}_{i}", item) for i, item in enumerate(value)]
        self.values[node] = self.builder.append("builtin::unpack", [("", made)], specs, *layer) if specs else []

    def _getitem(self, node: FxNode) -> None:
        whole, index = node.args
        values = self.values.get(whole) if isinstance(whole, FxNode) else None
        if not isinstance(values, list) or not isinstance(index, int):
            raise ConversionError(f"{node.name} takes {whole} apart, which is no list")
        self.values[node] = values[index]

    def _body(self, node: FxNode, argument: Any) -> Any:
        body = self.values.get(argument) if isinstance(argument, FxNode) else None
        if not isinstance(body, FxModule):
            raise ConversionError(f"{node.name} has no body")
        return Converter(body, str(argument.target)).subgraph()

    def _control_flow(self, node: FxNode, op: torch._ops.HigherOrderOperator) -> None:
        name = op.name()
        builtin = _CONTROL_FLOW.get(name)
        if builtin is None:
            raise ConversionError(f"{node.name} is the higher-order operator {name}, which Halftone does not have")
        value = node.meta.get("val")
        results = list(value) if isinstance(value, (list, tuple)) else [value]
        operands = []
        for argument in node.args:
            held = self.values.get(argument) if isinstance(argument, FxNode) else None
            is_body = isinstance(held, FxModule)
            operands.append(("", self._body(node, argument) if is_body else self._operand(node, argument)))
        specs = [spec_of(f"{node.name}_{i}", result) for i, result in enumerate(results)]
        self.values[node] = self.builder.append(builtin, operands, specs, *layer_of(node))

    def _output(self, node: FxNode) -> None:
        (results,) = node.args
        if not isinstance(results, (list, tuple)):
            results = [results]
        values = [self._operand(node, result) for result in results]
        self.builder.set_outputs(values, [("user", "")] * len(values))


def convert(
    module: FxModule,
    name: str,
    sources: Sequence[InputSource] | None = None,
    frozen: dict[int, torch.Tensor] | None = None,
) -> _C.GraphModule:
    """Halftone's graph of an FX graph of ATen operators. Raises ``ConversionError``, or ``halftone.Error`` of the check."""
    return Converter(module, name, sources, frozen).convert()


def try_or_reason(action: Callable[[], Any]) -> tuple[Any, str]:
    """The result, or None and why there is none."""
    try:
        return action(), ""
    except Exception as error:  # noqa: BLE001  whatever it is: the graph still runs as eager, and the reason is told
        text = str(error).strip().split("\n")[0]
        return None, text if isinstance(error, ConversionError) else f"{type(error).__name__}: {text}"
