"""Training through AotAutograd: gradients and steps of an optimizer equal eager's."""

from __future__ import annotations

import copy

import pytest
import torch
from dynamo_models import MODELS
from dynamo_support import assert_compiled, assert_same, fresh_dynamo

from halftone.dynamo import GraphRecord, collect


def train(model: torch.nn.Module, run: object, calls: list[tuple[torch.Tensor, ...]]) -> list[float]:
    """Three steps of SGD with momentum; the loss of each."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for index, args in enumerate(calls):
        torch.manual_seed(index)
        loss = run(*args).square().mean()  # type: ignore[operator]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_both(model: torch.nn.Module, calls: list[tuple[torch.Tensor, ...]], **arguments: object) -> list[GraphRecord]:
    eager = copy.deepcopy(model)
    expected = train(eager, eager, calls)
    with fresh_dynamo(), collect() as graphs:
        losses = train(model, torch.compile(model, backend="halftone", **arguments), calls)
    assert losses == pytest.approx(expected, rel=1e-4)
    assert_same(dict(model.state_dict()), dict(eager.state_dict()), 1e-4, 1e-5)
    for ours, theirs in zip(model.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-5)
    return graphs


@pytest.mark.parametrize("name", ["mlp", "cnn", "encoder", "decoder", "unet"])
def test_three_steps(name: str) -> None:
    torch.manual_seed(4)
    model, inputs = MODELS[name]()
    graphs = train_both(model.train(), [inputs(4) for _ in range(3)])
    assert_compiled(graphs, 2)
    assert [graph.kind for graph in graphs] == ["forward", "backward"]


def test_sizes_that_change() -> None:
    torch.manual_seed(5)
    model, inputs = MODELS["mlp"]()
    graphs = train_both(model.train(), [inputs(n) for n in (3, 5, 4)], dynamic=True)
    assert_compiled(graphs, 2)


def test_dropout_draws_as_eager() -> None:
    torch.manual_seed(6)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Dropout(0.5), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    assert_compiled(train_both(model.train(), [(torch.randn(4, 8),) for _ in range(3)]))


def test_gradients_of_inputs() -> None:
    model, inputs = MODELS["decoder"]()
    model.requires_grad_(False)
    (x,) = inputs(2)
    ours, theirs = (x.clone().requires_grad_() for _ in range(2))
    with fresh_dynamo(), collect() as graphs:
        torch.compile(model, backend="halftone")(ours).sum().backward()
    model(theirs).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-5)
    assert_compiled(graphs, 2)


def test_evaluation_between_steps_sees_new_weights() -> None:
    torch.manual_seed(7)
    model, inputs = MODELS["mlp"]()
    (x,) = inputs(3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fresh_dynamo(), collect() as graphs:
        fast = torch.compile(model, backend="halftone")
        for _ in range(3):
            model.train()
            fast(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            model.eval()
            with torch.no_grad():
                torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    assert_compiled(graphs)
    assert {graph.kind for graph in graphs} == {"forward", "backward", "inference"}


def test_autocast() -> None:
    torch.manual_seed(8)
    model, inputs = MODELS["mlp"]()
    eager = copy.deepcopy(model)
    (x,) = inputs(4)
    with fresh_dynamo(), collect() as graphs:
        for each, run in ((model, torch.compile(model, backend="halftone")), (eager, eager)):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                result = run(x)
            assert result.dtype == torch.bfloat16
            result.float().square().mean().backward()
            assert all(parameter.grad is not None for parameter in each.parameters())
    for ours, theirs in zip(model.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=5e-2, atol=5e-2)
    assert_compiled(graphs, 2)


def test_no_grad_inside() -> None:
    class Frozen(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                x = self.body(x)
            return self.head(x)

    model = Frozen()
    eager = copy.deepcopy(model)
    x = torch.randn(3, 4)
    with fresh_dynamo(), collect() as graphs:
        torch.compile(model, backend="halftone")(x).sum().backward()
    eager(x).sum().backward()
    assert model.body.weight.grad is None
    torch.testing.assert_close(model.head.weight.grad, eager.head.weight.grad)
    assert_compiled(graphs, 2)
