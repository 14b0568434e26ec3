"""Weights are compiled in: what happens when they change, and when models share them."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest
import torch
from dynamo_support import assert_compiled, fresh_dynamo
from torch import nn

import halftone
from halftone.dynamo import collect


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


def assert_follows(fast: object, model: nn.Module, x: torch.Tensor) -> None:
    with torch.no_grad():
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)  # type: ignore[operator]


def test_written_in_place() -> None:
    model, x = mlp(), torch.randn(2, 8)
    with fresh_dynamo(), collect() as graphs:
        fast = torch.compile(model, backend="halftone")
        assert_follows(fast, model, x)
        for write in (
            lambda: model[0].weight.mul_(2),
            lambda: model[2].bias.fill_(3),
            lambda: model.load_state_dict(mlp().state_dict()),
        ):
            with torch.no_grad():
                write()
            assert_follows(fast, model, x)
            assert_follows(fast, model, x)
    assert_compiled(graphs, 1)
    assert graphs[0].variants == 4  # the first, and one for each write


def test_replaced() -> None:
    model, x = mlp(), torch.randn(2, 8)
    with fresh_dynamo(), collect() as graphs:
        fast = torch.compile(model, backend="halftone")
        assert_follows(fast, model, x)
        model[0].weight = nn.Parameter(torch.randn(16, 8))
        assert_follows(fast, model, x)
        model[0].weight.data = torch.randn(16, 8)  # the same tensor with other memory
        assert_follows(fast, model, x)
    assert_compiled(graphs)


def test_models_that_share_code_but_not_weights() -> None:
    """dynamo serves all layers of a class by one graph; each needs weights of its own."""
    layers = [mlp() for _ in range(4)]
    with fresh_dynamo(), collect() as graphs:
        fast = [torch.compile(layer, backend="halftone") for layer in layers]
        for n in (2, 2):
            for one, layer in zip(fast, layers, strict=True):
                assert_follows(one, layer, torch.randn(n, 8))
    assert_compiled(graphs)
    assert sum(graph.variants for graph in graphs) == len(layers)


def test_models_that_share_weights() -> None:
    first = mlp()
    second = nn.Sequential(first[0], nn.Tanh(), first[2]).eval()
    x = torch.randn(2, 8)
    with fresh_dynamo(), collect() as graphs:
        one, other = (torch.compile(model, backend="halftone") for model in (first, second))
        for _ in range(2):
            assert_follows(one, first, x)
            assert_follows(other, second, x)
            with torch.no_grad():
                first[0].weight.add_(0.5)
    assert_compiled(graphs)


def test_tied_weights() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(20, 8)
            self.head = nn.Linear(8, 20, bias=False)
            self.head.weight = self.words.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.words(ids))

    model, ids = Tied().eval(), torch.randint(0, 20, (2, 3))
    with fresh_dynamo(), collect() as graphs:
        fast = torch.compile(model, backend="halftone")
        assert_follows(fast, model, ids)
        with torch.no_grad():
            model.head.weight.mul_(3)
        assert_follows(fast, model, ids)
    assert_compiled(graphs)


def test_weights_that_change_all_the_time_are_read_at_each_call() -> None:
    model, x = mlp(), torch.randn(2, 8)
    with fresh_dynamo(), collect() as graphs:
        fast = torch.compile(model, backend="halftone", options={"max_variants": 2})
        for _ in range(6):
            assert_follows(fast, model, x)
            with torch.no_grad():
                model[0].weight.add_(0.1)
    assert_compiled(graphs, 1)
    assert graphs[0].variants == 3  # two, and one that reads them


def test_without_freezing() -> None:
    model, x = mlp(), torch.randn(2, 8)
    with fresh_dynamo(), collect() as graphs:
        fast = torch.compile(model, backend="halftone", options={"freeze": False})
        for _ in range(3):
            assert_follows(fast, model, x)
            with torch.no_grad():
                model[0].weight.add_(0.1)
    assert_compiled(graphs, 1)
    assert graphs[0].variants == 1


def test_a_dropped_model_is_freed() -> None:
    model = mlp()
    memory = weakref.ref(model[0].weight)
    with fresh_dynamo():
        fast = torch.compile(model, backend="halftone")
        assert_follows(fast, model, torch.randn(2, 8))
        del fast, model
        torch._dynamo.reset()
        gc.collect()
    assert memory() is None


@pytest.mark.parametrize("scheme", ["int8wo", "int8dq"])
def test_scheme_quantizes(scheme: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32)).eval()
    x = torch.randn(4, 64)
    with fresh_dynamo(), collect() as graphs, torch.no_grad():
        plain = model(x)
        result = torch.compile(model, backend="halftone", options={"scheme": scheme})(x)
    assert_compiled(graphs, 1)
    error = (result - plain).norm() / plain.norm()
    assert 0 < error < 0.05  # not the same numbers, but near
    assert any("int8" in step["kernel"] or "int8" in step["target"] for step in graphs[0].steps)


def test_scheme_may_be_a_config() -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32)).eval()
    x = torch.randn(4, 64)
    config = halftone.Int8WeightOnlyConfig()
    with fresh_dynamo(), collect() as graphs, torch.no_grad():
        by_config = torch.compile(model, backend="halftone", options={"scheme": config})(x)
        by_name = torch.compile(model, backend="halftone", options={"scheme": "int8wo"})(x)
    assert_compiled(graphs)
    torch.testing.assert_close(by_config, by_name)


def test_quantized_modules_compile() -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32)).eval()
    x = torch.randn(4, 64)
    halftone.quantize_(model, "int8dq")
    with fresh_dynamo(), collect() as graphs, torch.no_grad():
        result = torch.compile(model, backend="halftone")(x)
        torch.testing.assert_close(result, model(x), rtol=1e-3, atol=1e-3)
    assert_compiled(graphs, 1)
    assert not any("linear" in text for text in graphs[0].left_to_aten)


def test_scheme_refuses_gradients() -> None:
    with fresh_dynamo(), pytest.raises(Exception, match="no_grad"):
        torch.compile(mlp(), backend="halftone", options={"scheme": "int8dq"})(torch.randn(2, 8))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sceme": "int8dq"}, "did you mean 'scheme'"),
        ({"threads": -1}, "threads"),
        ({"convolutions": "fast"}, "convolutions"),
        ({"fallback": "never"}, "fallback"),
        ({"scheme": "int8dq", "freeze": False}, "freeze"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str) -> None:
    with fresh_dynamo(), torch.no_grad(), pytest.raises(Exception, match=message):
        torch.compile(mlp(), backend="halftone", options=options)(torch.randn(2, 8))


def test_inductors_modes_are_refused() -> None:
    with fresh_dynamo(), torch.no_grad(), pytest.raises(Exception, match="inductor"):
        torch.compile(mlp(), backend="halftone", mode="max-autotune")(torch.randn(2, 8))


def test_fallback_can_be_an_error() -> None:
    with fresh_dynamo(), pytest.raises(Exception, match="unsqueeze_"):
        torch.compile(lambda x: x.clone().unsqueeze_(0), backend="halftone", options={"fallback": "error"})(torch.eye(3))


def test_copies_of_a_model_are_models_of_their_own() -> None:
    model = mlp()
    other = copy.deepcopy(model)
    with torch.no_grad():
        other[0].weight.mul_(2)
    with fresh_dynamo():
        x = torch.randn(2, 8)
        fast, fast_other = torch.compile(model, backend="halftone"), torch.compile(other, backend="halftone")
        assert_follows(fast, model, x)
        assert_follows(fast_other, other, x)
        assert_follows(fast, model, x)
