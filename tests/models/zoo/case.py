"""What a model of the zoo is: a module, its sample call, the calls to compare, and the calls to refuse."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

# Where eager PyTorch and the exported program run different kernels (a fused layer against its decomposition), sums are
# added in another order. Such cases name this bound; all others are compared bit for bit.
OTHER_KERNELS = 1e-5


@dataclass
class Call:
    """One call of the model."""

    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass
class Refusal:
    """A call that must end with exit code 1 and a message that has each word of `says` in it."""

    args: tuple
    says: tuple[str, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass
class Case:
    """One model. `args` and `kwargs` are the sample inputs it is exported with, and its first call.

    `calls` follow in the same session, so what a model keeps in its buffers is seen by the next call.    `tolerance` is absolute and relative, against eager PyTorch; `decomposed_tolerance` is that of the decomposed export.
    """

    module: torch.nn.Module
    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    dynamic_shapes: Any = None
    calls: list[Call] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    strict: bool = False
    train: bool = False
    tolerance: float = 0.0
    decomposed_tolerance: float = OTHER_KERNELS

    def all_calls(self) -> list[Call]:
        return [Call(self.args, self.kwargs), *self.calls]


@dataclass(frozen=True)
class Entry:
    """A case by name, not yet built: workers build only the ones they export."""

    name: str
    variants: tuple[str, ...]
    make: Callable[[], Case]

    def build(self) -> Case:
        """Weights and inputs depend on the name alone, not on which cases were built before."""
        torch.manual_seed(zlib.crc32(self.name.encode()))
        case = self.make()
        case.module.train(case.train)
        return case


ENTRIES: dict[str, Entry] = {}


def case(*variants: str) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Registers a function that makes a Case, under its own name.

    `variants` asks for more exports of the same model: "strict" (through dynamo) and "decomposed" (run_decompositions).
    """

    def register(make: Callable[[], Case]) -> Callable[[], Case]:
        name = make.__name__
        assert name not in ENTRIES, f"two models are called {name}"
        assert set(variants) <= {"strict", "decomposed"}, f"{name}: unknown variant in {variants}"
        ENTRIES[name] = Entry(name, variants, make)
        return make

    return register
