"""torch.compile(model, backend="halftone") against eager, on small models of many kinds."""

from __future__ import annotations

import pytest
import torch
from dynamo_models import MODELS, lstm
from dynamo_support import assert_compiled, fresh_dynamo, run_both

import halftone.dynamo
from halftone.dynamo import collect


@pytest.mark.parametrize("name", MODELS)
def test_inference(name: str) -> None:
    torch.manual_seed(1)
    model, inputs = MODELS[name]()
    assert_compiled(run_both(model.eval(), [inputs(2), inputs(2)]), 1)


@pytest.mark.parametrize("name", MODELS)
def test_one_graph_serves_all_batches(name: str) -> None:
    torch.manual_seed(2)
    model, inputs = MODELS[name]()
    graphs = run_both(model.eval(), [inputs(n) for n in (2, 5, 3, 7)], dynamic=True)
    # interpolate() makes dynamo look at the sizes once more, with every backend.
    assert_compiled(graphs, 2 if name == "unet" else 1)


def test_sizes_become_dynamic_by_themselves() -> None:
    model, inputs = MODELS["mlp"]()
    assert_compiled(run_both(model.eval(), [inputs(n) for n in (2, 3, 4, 5, 6)]), 2)


def test_mark_dynamic() -> None:
    model, inputs = MODELS["mlp"]()
    model.eval()
    with fresh_dynamo(), collect() as graphs, torch.no_grad():
        fast = torch.compile(model, backend="halftone")
        for n in (4, 9, 2):
            (x,) = inputs(n)
            torch._dynamo.mark_dynamic(x, 0)
            torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    assert_compiled(graphs, 1)


def test_lstm_breaks_as_with_other_backends() -> None:
    """dynamo leaves LSTMs to eager, and sometimes what stands around them."""
    model, inputs = lstm()
    model.eval()
    theirs = []

    def counting(gm: torch.fx.GraphModule, _inputs: object) -> object:
        theirs.append(gm)
        return gm.forward

    with fresh_dynamo(), torch.no_grad():
        torch.compile(model, backend=counting)(*inputs(2))
    graphs = run_both(model, [inputs(2), inputs(2)])
    assert len(graphs) == len(theirs)
    assert [graph.eager_reason for graph in graphs if graph.eager_reason] == []


def test_lstm_in_one_graph() -> None:
    model, inputs = lstm()
    with torch._dynamo.config.patch(allow_rnn=True):  # monkeypatch would take the setting away at its end
        graphs = run_both(model.eval(), [inputs(2), inputs(2)])
    assert_compiled(graphs, 1)
    assert any("lstm" in text for text in graphs[0].left_to_aten)


@pytest.mark.parametrize("name", ["mlp", "cnn", "encoder", "fast_path_encoder", "decoder"])
def test_nothing_much_is_left_to_aten(name: str) -> None:
    model, inputs = MODELS[name]()
    (graph,) = run_both(model.eval(), [inputs(2)])
    native = sum(step["kernel"] != "aten" for step in graph.steps)
    assert native >= 0.5 * len(graph.steps), graph.left_to_aten


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_modes_without_gradients(mode: type) -> None:
    model, inputs = MODELS["encoder"]()
    model.eval()
    args = inputs(2)
    with fresh_dynamo(), collect() as graphs, mode():
        torch.testing.assert_close(
            torch.compile(model, backend="halftone")(*args), model(*args), rtol=1e-4, atol=1e-5
        )
    assert_compiled(graphs, 1)
    assert graphs[0].kind == "inference"


def test_model_made_in_inference_mode_sees_writes() -> None:
    with torch.inference_mode(), fresh_dynamo():
        model = torch.nn.Linear(3, 3)
        fast, x = torch.compile(model, backend="halftone"), torch.ones(1, 3)
        torch.testing.assert_close(fast(x), model(x))
        model.weight.add_(1)  # such tensors have no version
        torch.testing.assert_close(fast(x), model(x))


def test_autocast_bf16() -> None:
    torch.manual_seed(3)
    model, inputs = MODELS["encoder"]()
    model.eval()
    args = inputs(2)
    with fresh_dynamo(), collect() as graphs, torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        expected = model(*args)
        result = torch.compile(model, backend="halftone")(*args)
    assert result.dtype == expected.dtype
    torch.testing.assert_close(result, expected, rtol=3e-2, atol=3e-2)
    assert_compiled(graphs, 1)
    assert graphs[0].route == "aot"


def test_autocast_inside() -> None:
    class Mixed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.a(x)
            assert y.dtype == torch.bfloat16
            return self.b(y.float())

    graphs = run_both(Mixed().eval(), [(torch.randn(2, 8),)], rtol=3e-2, atol=3e-2)
    assert_compiled(graphs, 1)


def test_threads() -> None:
    import concurrent.futures

    model, inputs = MODELS["encoder"]()
    model.eval()
    calls = [inputs(n) for n in (1, 2, 3, 2) for _ in range(4)]
    with torch.no_grad():
        expected = [model(*args) for args in calls]

    with fresh_dynamo(), torch.no_grad():
        fast = torch.compile(model, backend="halftone", dynamic=True)
        fast(*calls[4])

        def call(args: tuple[torch.Tensor, ...]) -> torch.Tensor:
            with torch.no_grad():  # a thread has a mode of its own
                return fast(*args)

        before = dict(halftone.dynamo.counters)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            results = list(pool.map(call, calls * 3))
        assert halftone.dynamo.counters["eager"] == before.get("eager", 0)
    for result, wanted in zip(results, expected * 3, strict=True):
        torch.testing.assert_close(result, wanted, rtol=1e-4, atol=1e-5)
