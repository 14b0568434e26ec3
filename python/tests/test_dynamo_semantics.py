"""What eager does besides computing: writes, views, numbers, random numbers, graph breaks, nested arguments."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest
import torch
from dynamo_support import assert_compiled, fresh_dynamo, run_both
from torch.nn import functional

from halftone.dynamo import collect


def _set_item(x: torch.Tensor) -> torch.Tensor:
    x[0:2] = 7.0
    return x


def _write_view(x: torch.Tensor) -> torch.Tensor:
    x[0].mul_(3)
    return x.sum()


def _control(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, (x,))


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]] = {
    "write to input": (lambda x: (x.add_(1), x * 2)[1], lambda i: (torch.randn(3),)),
    "write through a view": (_write_view, lambda i: (torch.randn(3, 2),)),
    "written input returned": (lambda x: x.add_(1), lambda i: (torch.randn(3),)),
    "item assignment": (_set_item, lambda i: (torch.randn(6),)),
    "index_put_": (lambda x, j: x.index_put_((j,), torch.tensor(1.0)), lambda i: (torch.randn(6), torch.tensor([1, 3]))),
    "two inputs written": (lambda x, y: (x.mul_(2), y.add_(x))[1] + 1, lambda i: (torch.randn(3), torch.randn(3))),
    "chunks joined": (lambda x: torch.cat(x.chunk(3)[::-1]), lambda i: (torch.randn(6),)),
    "top k": (lambda x: torch.topk(x, 2), lambda i: (torch.randn(6),)),
    "sizes that depend on data": (lambda x: (x[x > 0] * 2).sum(), lambda i: (torch.randn(9),)),
    "complex": (lambda x: torch.view_as_real(torch.fft.fft(x)), lambda i: (torch.randn(6),)),
    "lazy conjugate": (lambda x: torch.fft.fft(x).conj(), lambda i: (torch.randn(6),)),
    "new tensors": (lambda x: (x + 1, torch.ones(3), torch.arange(4)), lambda i: (torch.randn(6),)),
    "constant tensor": (lambda x: torch.tensor([1.0, 2.0, 3.0]) + x, lambda i: (torch.randn(3),)),
    "float64": (lambda x: x @ x.t(), lambda i: (torch.randn(3, 3, dtype=torch.float64),)),
    "bfloat16": (functional.gelu, lambda i: (torch.randn(3, 3, dtype=torch.bfloat16),)),
    "integers": (lambda x: x // 2 + x % 3, lambda i: (torch.arange(9),)),
    "transposed input": (lambda x: x.t() @ x, lambda i: (torch.randn(3, 4).t(),)),
    "control flow": (_control, lambda i: (torch.randn(9) + (1 if i else -1),)),
    "dropout": (lambda x: functional.dropout(x, 0.5, True), lambda i: (torch.randn(50),)),
    "random numbers": (
        lambda x: x + torch.rand(5) + torch.randn_like(x) + torch.randint(0, 9, (5,)),
        lambda i: (torch.randn(5),),
    ),
    "none and numbers out": (lambda x, n: (x * n, n + 1, x.shape[0], None), lambda i: (torch.randn(3, 2), 5)),
    "scalar tensors": (lambda x, s: x * s + s, lambda i: (torch.randn(3), torch.tensor(2.5))),
    "empty": (lambda x: x.relu().sum(0), lambda i: (torch.randn(0, 3),)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str) -> None:
    function, inputs = FUNCTIONS[name]
    assert_compiled(run_both(function, [inputs(0), inputs(1)]))


def test_results_share_memory_as_in_eager() -> None:
    def views(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x + 1
        return x.view(-1), x[1:], y, y.t()

    with fresh_dynamo(), collect() as graphs:
        x = torch.randn(3, 2)
        flat, tail, y, turned = torch.compile(views, backend="halftone")(x)
    assert_compiled(graphs, 1)
    x.fill_(5)
    y.fill_(6)
    for view, value in ((flat, 5), (tail, 5), (turned, 6)):
        assert view.eq(value).all()


def test_results_are_fresh() -> None:
    """A result that is kept is not overwritten by the next call."""
    fast = torch.compile(lambda x: x * 2 + 1, backend="halftone")
    first = fast(torch.ones(4))
    fast(torch.zeros(4))
    assert first.eq(3).all()


def test_arguments_that_share_memory() -> None:
    def write(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return y * 2

    with fresh_dynamo(), collect() as graphs:
        fast = torch.compile(write, backend="halftone")
        assert fast(torch.zeros(4), torch.zeros(4)).eq(0).all()
        whole = torch.zeros(4)
        assert fast(whole, whole[:]).eq(2).all()
        assert sum(graph.eager_calls for graph in graphs) == 1  # and a warning
        assert fast(whole, whole).eq(4).all()
    assert_compiled(graphs[:1])


def test_keyword_arguments_and_dicts() -> None:
    Pair = collections.namedtuple("Pair", "left right")

    def model(batch: dict[str, Any], *, scale: float = 1.0, bias: torch.Tensor | None = None) -> dict[str, Any]:
        total = batch["a"] * scale + batch["rest"][0]
        if bias is not None:
            total = total + bias
        return {"sum": total, "pair": Pair(total * 2, [total, 3])}

    batch = {"a": torch.randn(3), "rest": [torch.randn(3)]}
    graphs = run_both(model, [(batch,), (batch,)], kwargs=[{"scale": 2.0}, {"scale": 2.0, "bias": torch.ones(3)}])
    assert_compiled(graphs, 2)


def test_graph_break() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        y = x.relu() + 1
        torch._dynamo.graph_break()
        return y * y

    assert_compiled(run_both(model, [(torch.randn(4),)] * 2), 2)


def test_branches_on_numbers() -> None:
    def model(x: torch.Tensor, deep: bool, times: int) -> torch.Tensor:
        for _ in range(times):
            x = x.relu() - 0.1 if deep else x + 1
        return x

    calls = [(torch.randn(4), deep, times) for deep in (True, False) for times in (1, 3)]
    assert_compiled(run_both(model, calls))


def test_buffers_are_written() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen.add_(x.shape[0])
            return self.linear(x) + self.seen

    assert_compiled(run_both(Counter(), [(torch.randn(3, 4),)] * 3), 1)


def test_batch_norm_in_training_without_gradients() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    assert_compiled(run_both(model, [(torch.randn(5, 4),) for _ in range(3)]), 1)


def test_numbers_of_modules_are_constants_with_dynamic_sizes() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.LayerNorm(8)).eval()
    (graph,) = run_both(model, [(torch.randn(n, 4),) for n in (3, 5)], dynamic=True)
    assert_compiled([graph])
    assert not any("batch_norm" in text or "item" in text for text in graph.left_to_aten)


def test_floats_that_change() -> None:
    def model(x: torch.Tensor, scale: float) -> torch.Tensor:
        return (x * scale).relu() + scale

    graphs = run_both(model, [(torch.randn(4), scale) for scale in (0.5, 1.25, 2.0, -3.5)])
    assert_compiled(graphs, 2)  # a constant first, then an input


def test_functions_of_sizes() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        n, m = x.shape
        y = x.reshape(n // 2, 2 * m)
        return torch.cat((y, y.new_zeros(max(n, m) - min(n, m) + 1, 2 * m))) * (n % 3)

    assert_compiled(run_both(model, [(torch.randn(n, 6),) for n in (8, 10, 14)], dynamic=True))


def test_what_cannot_be_converted_runs_as_eager_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.clone().unsqueeze_(0) + 1

    with caplog.at_level("WARNING", logger="halftone.dynamo"):
        graphs = run_both(model, [(torch.eye(3),)])
    assert len(graphs) == 1
    reasons = [graph.eager_reason for graph in graphs if graph.eager_reason]
    assert any("unsqueeze_" in reason for reason in reasons)
    assert any("unsqueeze_" in record.getMessage() for record in caplog.records)
