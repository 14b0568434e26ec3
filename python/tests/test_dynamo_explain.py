"""halftone.explain, the counters, and graphs of torch.export."""

from __future__ import annotations

import pytest
import torch
from dynamo_models import MODELS
from dynamo_support import fresh_dynamo

from halftone import dynamo


def test_explain_a_model() -> None:
    model, inputs = MODELS["mlp"]()
    with torch.no_grad(), fresh_dynamo():
        report = dynamo.explain(model.eval(), *inputs(2))
    assert len(report.graphs) == 1
    assert not report.eager
    assert not report.graph_breaks
    assert report.native_share == 1.0
    assert report.left_to_aten == []
    assert "1 graph, 0 graph breaks" in str(report)


def test_explain_breaks_and_reasons() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        y = torch.special.bessel_j0(x)
        torch._dynamo.graph_break()
        return y.clone().unsqueeze_(0)

    with torch.no_grad(), fresh_dynamo():
        report = dynamo.explain(model, torch.eye(3))
    text = str(report)
    assert len(report.graphs) == 2
    assert sum(report.graph_breaks.values()) == 1
    assert "special_bessel_j0" in text
    assert "runs as eager" in text
    assert "unsqueeze_" in text
    assert 0 <= report.native_share <= 1


def test_explain_makes_graphs_anew() -> None:
    model, inputs = MODELS["mlp"]()
    model.eval()
    with torch.no_grad(), fresh_dynamo():
        torch.compile(model, backend="halftone")(*inputs(2))
        for _ in range(2):
            assert len(dynamo.explain(model, *inputs(2)).graphs) == 1


def test_explain_training() -> None:
    model, inputs = MODELS["mlp"]()
    with fresh_dynamo():
        report = dynamo.explain(model, *inputs(2))
    assert [graph.kind for graph in report.graphs] == ["forward"]  # the backward is compiled at its first use
    assert "graph 1 (forward, aot): " in str(report)


def test_counters() -> None:
    dynamo.reset_counters()
    with torch.no_grad(), fresh_dynamo():
        torch.compile(lambda x: x + 1, backend="halftone")(torch.ones(2))
        torch.compile(lambda x: x.clone().unsqueeze_(0), backend="halftone")(torch.eye(2))
    assert dynamo.counters["graphs"] == 2
    assert dynamo.counters["compiled"] == 1
    assert dynamo.counters["eager"] == 1


def test_the_name_is_known_to_dynamo() -> None:
    assert "halftone" in torch._dynamo.list_backends()


@pytest.mark.parametrize("name", ["mlp", "cnn", "encoder"])
def test_exported_program(name: str) -> None:
    model, inputs = MODELS[name]()
    args = inputs(3)
    program = torch.export.export(model.eval(), args)
    graph = dynamo.graph_from_exported(program)
    with torch.no_grad():
        (result,) = graph(*args)
        torch.testing.assert_close(result, model(*args), rtol=1e-4, atol=1e-5)


def test_exported_program_with_dynamic_sizes() -> None:
    model, inputs = MODELS["mlp"]()
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(model.eval(), inputs(3), dynamic_shapes=({0: batch},))
    graph = dynamo.graph_from_exported(program)
    for n in (2, 7):
        (x,) = inputs(n)
        with torch.no_grad():
            torch.testing.assert_close(graph(x)[0], model(x), rtol=1e-4, atol=1e-5)
