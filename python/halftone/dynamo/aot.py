"""Graphs that go through AotAutograd: training, and inference under autocast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import TracingContext
from torch.fx import GraphModule as FxModule

from .convert import InputSource, try_or_reason
from .options import BackendOptions
from .program import Program, fall_back
from .records import GraphRecord, new_record
from .trace import refuse_moved_inputs

Compiled = Callable[[list[Any]], Any]


def _boxed(function: Callable[..., Any]) -> Compiled:
    """AotAutograd's calling convention: one list, which is emptied so that memory can go early."""

    def run(args: list[Any]) -> Any:
        given = tuple(args)
        args.clear()
        return function(*given)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _sources(traced: FxModule, outer: Sequence[InputSource], freeze: bool) -> tuple[InputSource, ...]:
    """AotAutograd keeps the order of the inputs, unless it had to merge some that share memory."""
    placeholders = traced.graph.find_nodes(op="placeholder")
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if not freeze or metadata is None or len(placeholders) != len(outer):
        return tuple(InputSource(node.name) for node in placeholders)
    static = set(metadata.static_input_indices)
    return tuple(
        source if position in static else InputSource(source.name) for position, source in enumerate(outer)
    )


def compile_traced(
    traced: FxModule, sources: Sequence[InputSource], options: BackendOptions, record: GraphRecord
) -> Callable[..., Any]:
    """A function on flat arguments: compiled at its first call, when the weights are there, or eager."""

    def make() -> Program:
        refuse_moved_inputs(traced)
        return Program(traced, sources, options, record)

    program, reason = try_or_reason(make)
    if program is None:
        fall_back(record, reason, options)
        return traced.forward
    return program.call(traced.forward)


def aot_backend(outer: Sequence[InputSource], options: BackendOptions) -> Callable[..., Any]:
    """AotAutograd with Halftone as the compiler of forward, backward and inference graphs."""

    def compiler(kind: str) -> Callable[[FxModule, Sequence[Any]], Compiled]:
        def compile_graph(traced: FxModule, _examples: Sequence[Any]) -> Compiled:
            record = new_record(kind, "aot")
            sources = _sources(traced, outer, freeze=kind == "inference")
            return _boxed(compile_traced(traced, sources, options, record))

        return compile_graph

    return aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )
