"""What the tests of the torch.compile backend share. The oracle is PyTorch's eager mode."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from halftone.dynamo import GraphRecord, collect


@contextlib.contextmanager
def fresh_dynamo() -> Iterator[None]:
    """No graphs from tests before."""
    torch._dynamo.reset()
    try:
        yield
    finally:
        torch._dynamo.reset()


def clones(values: Any) -> Any:
    """Tensors with memory of their own, in nested values, but shared memory stays shared."""
    return copy.deepcopy(values)


def run_both(
    model: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    *,
    gradients: bool = False,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    kwargs: Sequence[dict[str, Any]] | None = None,
    **compile_arguments: Any,
) -> list[GraphRecord]:
    """Calls the model and its compiled form alike. Results, and what became of arguments and state, must be equal.

    Returns the graphs that the backend was given.
    """
    eager = copy.deepcopy(model)
    with fresh_dynamo(), collect() as graphs, contextlib.nullcontext() if gradients else torch.no_grad():
        compiled = torch.compile(model, backend="halftone", **compile_arguments)
        for index, args in enumerate(calls):
            named = kwargs[index] if kwargs else {}
            theirs, ours = (clones(args), clones(named)), (clones(args), clones(named))
            torch.manual_seed(index)
            expected = eager(*theirs[0], **theirs[1])
            torch.manual_seed(index)
            result = compiled(*ours[0], **ours[1])
            assert_same(result, expected, rtol, atol)
            assert_same(ours, theirs, rtol, atol)
            if isinstance(model, torch.nn.Module):
                assert_same(dict(model.state_dict()), dict(eager.state_dict()), rtol, atol)
    return graphs


def assert_same(result: Any, expected: Any, rtol: float = 1e-4, atol: float = 1e-5) -> None:
    """Equal in type, nesting and numbers."""
    assert type(result) is type(expected)
    if isinstance(expected, dict):
        assert list(result) == list(expected)
        for key, value in expected.items():
            assert_same(result[key], value, rtol, atol)
    elif isinstance(expected, (list, tuple)):
        assert len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            assert_same(one, other, rtol, atol)
    elif isinstance(expected, torch.Tensor):
        torch.testing.assert_close(result, expected, rtol=rtol, atol=atol)
        assert result.stride() == expected.stride() or not expected.is_contiguous()
    else:
        assert result == expected


def assert_compiled(graphs: Sequence[GraphRecord], count: int | None = None) -> None:
    """No graph ran as eager; each was called."""
    assert graphs
    assert [graph.eager_reason for graph in graphs if graph.eager_reason] == []
    assert all(graph.variants for graph in graphs)
    if count is not None:
        assert len(graphs) == count
