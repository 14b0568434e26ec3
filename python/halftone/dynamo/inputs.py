"""The placeholders of a graph that dynamo gives: where they come from, and which of them are weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch._guards import TracingContext, detect_fake_mode
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.fx import GraphModule as FxModule
from torch.fx import Node as FxNode

from .convert import InputSource, module_name


@dataclasses.dataclass(frozen=True)
class GraphInputs:
    """One entry for each placeholder."""

    sources: tuple[InputSource, ...]
    #: Real tensors, numbers and symbols.
    examples: tuple[Any, ...]


def _source_of(node: FxNode) -> InputSource:
    grapharg = node.meta.get("grapharg")
    path = getattr(getattr(grapharg, "source", None), "name", "")
    path = path() if callable(path) else path
    static = "_dynamo_static_input_type" in (node.meta.get("tensor_dict") or {})
    if not static:
        return InputSource(node.name)
    value = node.meta.get("example_value")
    kind = "parameter" if isinstance(value, torch.nn.Parameter) else "buffer"
    return InputSource(module_name(path) or node.name, kind)


def inputs_of(gm: FxModule, example_inputs: Sequence[Any]) -> GraphInputs:
    """Reads what dynamo left on the placeholders."""
    nodes = gm.graph.find_nodes(op="placeholder")
    return GraphInputs(tuple(_source_of(node) for node in nodes), tuple(example_inputs))


def fakes_of(inputs: GraphInputs) -> tuple[FakeTensorMode, list[Any]]:
    """Fake tensors with dynamo's symbols. Those that dynamo itself traced may have been changed by the graph already."""
    context = TracingContext.try_get()
    mode = detect_fake_mode(inputs.examples) or FakeTensorMode(allow_non_fake_inputs=True)

    def fake(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or isinstance(value, FakeTensor):
            return value
        known = context.tensor_to_context.get(value) if context is not None else None
        if known is None:
            return mode.from_tensor(value, static_shapes=True)
        return mode.from_tensor(value, symbolic_context=known, source=known.tensor_source)

    return mode, [fake(value) for value in inputs.examples]


def specialize_module_floats(gm: FxModule) -> bool:
    """Makes dynamo start again with the numbers that modules hold (``eps``, ``momentum``) as constants.

    With ``dynamic=True`` dynamo makes inputs of them, so that no pass can look at them. Returns whether there are any.
    """
    from torch._dynamo.symbolic_convert import TensorifyState

    found = False
    for node in gm.graph.find_nodes(op="placeholder"):
        memo = getattr(node.meta.get("example_value"), "item_memo", None)
        expression = getattr(getattr(memo, "node", None), "_expr", None)
        source = getattr(node.meta.get("grapharg"), "source", None)
        if expression is None or not hasattr(expression, "name") or source is None:
            continue
        only_items = all(user.target == "item" for user in node.users)
        if only_items and source.guard_source.is_unspecialized_nn_module():
            found = found or not TensorifyState.should_specialize(expression.name)
            TensorifyState.specialize(expression.name)
    return found


def written_inputs(gm: FxModule) -> set[int]:
    """Positions of placeholders that a graph of ATen operators writes to, also through views."""
    owners: dict[int, int] = {}
    for position, node in enumerate(gm.graph.find_nodes(op="placeholder")):
        memory = _memory_of(node.meta.get("val"))
        if memory is not None:
            owners.setdefault(memory, position)
    written = set()
    for node in gm.graph.nodes:
        for operand in _written_operands(node):
            memory = _memory_of(operand.meta.get("val"))
            if memory in owners:
                written.add(owners[memory])
    return written


def _memory_of(value: Any) -> int | None:
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    return value.untyped_storage()._cdata


#: Operators that update running statistics, which their schemas do not show.
_NORMS = {"aten::batch_norm": "training", "aten::native_batch_norm": "training", "aten::instance_norm": "use_input_stats"}


def _written_operands(node: FxNode) -> list[FxNode]:
    op = node.target
    if node.op != "call_function" or not isinstance(op, torch._ops.OpOverload):
        return []
    arguments = op._schema.arguments
    given = dict(zip((argument.name for argument in arguments), node.args, strict=False)) | dict(node.kwargs)
    names = [a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write]
    flag = _NORMS.get(op._schema.name)
    if flag is not None and given.get(flag) is not False:
        names += ["running_mean", "running_var"]
    operands = [given.get(name) for name in names]
    flat = [each for item in operands for each in (item if isinstance(item, (list, tuple)) else [item])]
    return [each for each in flat if isinstance(each, FxNode)]
