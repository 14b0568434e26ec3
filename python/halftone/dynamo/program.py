"""A graph of ATen operators that is compiled once for each set of weights that it is called with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule as FxModule

from halftone import _C
from halftone.quantization import quantize_

from .convert import InputSource, convert, try_or_reason
from .inputs import written_inputs
from .options import BackendOptions
from .records import GraphRecord, log


class FallbackError(RuntimeError):
    """A graph cannot be compiled, and ``options={"fallback": "error"}`` forbids eager."""


class Program:
    """What a ``CompiledCall`` asks for variants. Thread-safe."""

    def __init__(
        self,
        traced: FxModule,
        sources: Sequence[InputSource],
        options: BackendOptions,
        record: GraphRecord,
    ) -> None:
        self.traced = traced
        self.sources = tuple(sources)
        self.options = options
        self.record = record
        self.written = sorted(written_inputs(traced))
        self.frozen = [
            position
            for position, source in enumerate(self.sources)
            if options.freeze and source.kind != "user" and position not in self.written
        ]
        self._lock = threading.Lock()
        self._failed = False

    def call(self, eager: Callable[..., Any]) -> _C.CompiledCall:
        """A function on flat arguments."""
        record = self.record  # not self: the function must not hold what holds it

        def eager_call(*args: Any) -> Any:
            record.eager_call()
            return eager(*args)

        return _C.CompiledCall(self.make, eager_call, self.written)

    def make(self, call: _C.CompiledCall, args: tuple[Any, ...]) -> _C.CompiledVariant | None:
        """The variant for the weights among ``args``; None where it cannot be made."""
        with self._lock:
            if self._failed:
                return None
            variant = call.variant_for(args)  # another thread may have been first
            if variant is not None:
                return variant
            variant, reason = try_or_reason(lambda: self._compile(args))
            if variant is None:
                self._failed = True
                fall_back(self.record, reason, self.options)
                return None
            call.add(variant, args)
            return variant

    def _positions_to_freeze(self, args: tuple[Any, ...]) -> list[int]:
        # Tensors of inference mode have no version: a write to one would not be seen.
        positions = [p for p in self.frozen if isinstance(args[p], torch.Tensor) and not args[p].is_inference()]
        if self.options.scheme is not None or self.record.variants < self.options.max_variants:
            return positions
        log.warning(
            "a graph was compiled for %d sets of weights (max_variants); from now on it reads weights at each call",
            self.record.variants,
        )
        return []

    def _compile(self, args: tuple[Any, ...]) -> _C.CompiledVariant:
        positions = self._positions_to_freeze(args)
        # Without a name of Python's, the tensor object may die before its graph does; memory and version are shared.
        frozen = {position: args[position].detach() for position in positions}
        module = convert(self.traced, f"graph ({self.record.kind})", self.sources, frozen)
        if self.options.scheme is not None:
            quantize(module, self.options.scheme)
        pairs = [(position, args[position]) for position in positions]
        variant = _C.compile_variant(module, pairs, **self.options.compile_arguments())
        report = variant.report(args)  # makes the plan for these sizes, which the call that waits needs anyway
        self.record.compiled(variant.nodes, report)
        return variant


def quantize(module: _C.GraphModule, scheme: Any) -> None:
    """Quantizes a graph before it is compiled; one without weights to quantize stays as it is, with a note in the log."""
    try:
        quantize_(module, scheme)
    except _C.Error as error:
        if "nothing to quantize" not in str(error).lower():
            raise
        log.info("scheme %s: %s", scheme, error)


def fall_back(record: GraphRecord, reason: str, options: BackendOptions) -> None:
    """Notes that a graph runs as eager, if the options allow it."""
    record.fall_back(reason)
    if options.fallback == "error":
        raise FallbackError(f"backend halftone cannot compile a graph ({record.kind}): {reason}")
