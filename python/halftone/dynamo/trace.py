"""dynamo's graphs, which call Python functions, as graphs of ATen operators.

Two ways. *Pre-dispatch* stops above autograd and autocast: ``linear``, ``layer_norm`` and
``scaled_dot_product_attention`` stay whole, which the compiler's passes know best and which leaves less to ATen; writes to
inputs stay writes. *AotAutograd* (``aot.py``) traces below both: it gives gradients, and sees what autocast converts.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import torch
from torch.fx import GraphModule as FxModule
from torch.fx.experimental.proxy_tensor import make_fx

from .convert import ConversionError
from .decompositions import decompositions
from .inputs import GraphInputs, fakes_of

#: Calls that turn autocast on or off inside a graph.
_AUTOCAST = ("_enter_autocast", "_exit_autocast")


def uses_autocast(gm: FxModule) -> bool:
    """Whether the graph runs under autocast, or a part of it does."""
    if torch.is_autocast_enabled("cpu"):
        return True
    return any(
        getattr(node.target, "__name__", "") in (*_AUTOCAST, "wrap_with_autocast")
        for module in gm.modules()
        if isinstance(module, FxModule)
        for node in module.graph.nodes
        if node.op == "call_function"
    )


def needs_gradients(gm: FxModule, example_inputs: Any) -> bool:
    """Whether a result may require gradients: then AotAutograd makes two graphs of this one."""
    enabled = torch.is_grad_enabled() or any(
        node.target is torch._C._set_grad_enabled and node.args == (True,) for node in gm.graph.nodes
    )
    return enabled and any(isinstance(value, torch.Tensor) and value.requires_grad for value in example_inputs)


def pre_dispatch(gm: FxModule, inputs: GraphInputs) -> FxModule:
    """ATen operators as they are called, before autograd and autocast see them."""
    fake_mode, fakes = fakes_of(inputs)

    def run(*args: Any) -> Any:
        return torch.fx.Interpreter(gm).run(*args)

    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of eager's own code, which the user has seen or will see
        stack.enter_context(torch.fx.traceback.preserve_node_meta())
        stack.enter_context(fake_mode)
        traced = make_fx(run, decompositions(), pre_dispatch=True, _allow_non_fake_inputs=True)(*fakes)
    refuse_moved_inputs(traced)
    floats_as_tensors(traced)
    traced.graph.eliminate_dead_code(_is_impure)
    traced.recompile()
    return traced


#: They take a tensor where they take a number.
_BINARY = (
    torch.ops.aten.add.Tensor,
    torch.ops.aten.sub.Tensor,
    torch.ops.aten.mul.Tensor,
    torch.ops.aten.div.Tensor,
)


def floats_as_tensors(traced: FxModule) -> None:
    """dynamo gives floats that change as tensors and takes the number out; a plan cannot wait for a number.

    ``mul(x, item(t))`` becomes ``mul(x, to(t, x.dtype))``. Only in float32 and float64, where eager rounds the number to the
    same type before it computes.
    """
    for node in traced.graph.find_nodes(op="call_function", target=torch.ops.aten.item.default):
        source = node.args[0]
        if source.op != "placeholder" or source.meta["val"].dtype != torch.float64:
            continue
        for user in list(node.users):
            value = user.meta.get("val")
            if user.target not in _BINARY or len(user.args) != 2 or user.args[1] is not node:
                continue
            if isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.float64):
                with traced.graph.inserting_before(user):
                    number = traced.graph.call_function(torch.ops.aten.to.dtype, (source, value.dtype))
                number.meta["val"] = source.meta["val"].to(value.dtype)
                user.update_arg(1, number)


def _is_impure(node: torch.fx.Node) -> bool:
    if node.op in ("placeholder", "output"):
        return True
    if isinstance(node.target, torch._ops.OpOverload):
        op = node.target
        drawn = torch.Tag.nondeterministic_seeded in op.tags
        # Batch norm writes statistics that its schema does not show.
        return op._schema.is_mutable or drawn or "norm" in op._schema.name or "assert" in op._schema.name
    return isinstance(node.target, torch._ops.HigherOrderOperator)


def refuse_moved_inputs(traced: FxModule) -> None:
    """An operator that gives a tensor other sizes or memory in place cannot be planned."""
    for node in traced.graph.nodes:
        op = node.target
        if op is torch.ops.aten.detach_.default or not isinstance(op, torch._ops.OpOverload):
            continue
        if torch.Tag.inplace_view in op.tags:
            raise ConversionError(f"{node.name} changes the sizes of a tensor in place ({node.target})")
