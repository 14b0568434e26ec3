"""GraphModule, Session, files and errors; PyTorch's eager is the oracle."""

import copy
import pickle

import pytest
import torch

import halftone
from conftest import mlp, relative_error


class Nested(torch.nn.Module):
    """Nested arguments by position and by name, and nested results."""

    def forward(self, pair, scale, *, options):
        a, b = pair
        return {"sum": a + b * scale, "parts": (a * options["factor"], [b])}


class Counter(torch.nn.Module):
    """State that a call changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)
        return x + self.count


class TestCalls:
    def test_gives_what_eager_gives(self, model, graph, x):
        assert relative_error(graph(x), model(x)) < 1e-5

    def test_dynamic_sizes(self, model, graph):
        for rows in (2, 5, 17):
            rows_of_ones = torch.ones(rows, 64)
            assert torch.allclose(graph(rows_of_ones), model(rows_of_ones), atol=1e-5)

    def test_nested_arguments_and_results(self):
        args = (torch.randn(3), torch.randn(3)), 2.0
        kwargs = {"options": {"factor": torch.tensor(3.0)}}
        graph = halftone.compile_exported(torch.export.export(Nested(), args, kwargs))
        got, expected = graph(*args, **kwargs), Nested()(*args, **kwargs)
        assert got.keys() == expected.keys()
        assert torch.allclose(got["sum"], expected["sum"])
        assert isinstance(got["parts"], tuple) and isinstance(got["parts"][1], list)
        assert torch.allclose(got["parts"][0], expected["parts"][0])
        assert torch.allclose(got["parts"][1][0], expected["parts"][1][0])

    def test_eager_session_is_eager(self, model, graph, x):
        assert torch.equal(graph.session("eager")(x), model(x))

    def test_unknown_backend(self, graph):
        with pytest.raises(halftone.Error, match='"eager"') as error:
            graph.session("inductor")
        assert error.value.code == "invalid argument"

    def test_results_have_no_gradient(self, graph, x):
        assert not graph(x.requires_grad_()).requires_grad

    def test_inputs_are_not_copied(self):
        class AddOne(torch.nn.Module):
            def forward(self, x):
                x.add_(1)
                return x * 2

        graph = halftone.compile_exported(torch.export.export(AddOne(), (torch.zeros(4),)))
        x = torch.zeros(4)
        graph(x)
        assert torch.equal(x, torch.ones(4))  # written where Python sees it

    def test_tensors_are_shared(self, graph):
        weight = graph.tensors()["0.weight"]
        assert weight.data_ptr() == graph.tensors()["0.weight"].data_ptr()


class TestState:
    def graph(self):
        return halftone.compile_exported(torch.export.export(Counter(), (torch.zeros(2),)))

    def test_calls_share_state(self):
        graph, eager = self.graph(), Counter()
        for _ in range(3):
            assert torch.equal(graph(torch.zeros(2)), eager(torch.zeros(2)))

    def test_sessions_have_their_own(self):
        graph = self.graph()
        one, other = graph.session(), graph.session()
        one(torch.zeros(2))
        assert one(torch.zeros(2))[0] == 2
        assert other(torch.zeros(2))[0] == 1
        assert one.state_names == ["count"] and one.state("count")[0] == 2
        one.reset()
        assert one(torch.zeros(2))[0] == 1

    def test_set_tensor_is_seen(self):
        graph = halftone.compile_exported(torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),)))
        graph(torch.ones(1, 2))
        for name, value in (("weight", torch.zeros(2, 2)), ("bias", torch.ones(2))):
            graph.set_tensor(name, value)
        assert torch.equal(graph(torch.ones(1, 2)), torch.ones(1, 2))


class TestFiles:
    def test_ht_there_and_back(self, model, graph, x, tmp_path):
        graph.save(str(tmp_path / "model.ht"))
        loaded = halftone.load(tmp_path / "model.ht")
        assert isinstance(loaded, halftone.GraphModule)
        assert torch.equal(loaded(x), graph(x))

    def test_quantized_ht(self, graph, x, tmp_path):
        halftone.quantize_(graph, "int8wo")
        graph.save(str(tmp_path / "model.ht"))
        assert torch.equal(halftone.load(tmp_path / "model.ht")(x), graph(x))

    def test_pt2(self, model, x, tmp_path):
        torch.export.save(torch.export.export(model, (x,)), tmp_path / "model.pt2")
        for loaded in (halftone.from_pt2(tmp_path / "model.pt2"), halftone.load(tmp_path / "model.pt2")):
            assert relative_error(loaded(x), model(x)) < 1e-5

    def test_compile_exported_leaves_no_file(self, model, x, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        graph = halftone.compile_exported(torch.export.export(model, (x,)))
        assert list(tmp_path.iterdir()) == []
        assert relative_error(graph(x), model(x)) < 1e-5

    def test_no_program(self):
        with pytest.raises(TypeError, match="torch.export.export"):
            halftone.compile_exported(torch.nn.ReLU())


class TestReading:
    def test_names_text_and_repr(self, graph):
        assert graph.input_names == ["input"]
        assert "aten::linear" in graph.graph_text
        assert "0.weight" in graph.tensors()
        assert graph.graph_dot.startswith("digraph")
        for part in ("Sequential", "input", "nodes", "bytes"):
            assert part in repr(graph)
        assert repr(graph) in repr(graph.session())

    def test_clone_is_its_own(self, graph, x):
        other = graph.clone()
        halftone.quantize_(other, "int4wo")
        assert "halftone::int4_linear" in other.graph_text
        assert "halftone::int4_linear" not in graph.graph_text

    def test_sample(self, graph, x):
        args, kwargs = graph.sample
        assert torch.equal(args[0], x) and kwargs == {}


class TestErrors:
    def test_codes(self, graph, tmp_path):
        with pytest.raises(halftone.Error) as missing:
            halftone.load(tmp_path / "nowhere.ht")
        assert missing.value.code == "not found" and "nowhere.ht" in str(missing.value)
        (tmp_path / "broken.ht").write_bytes(b"no model")
        with pytest.raises(halftone.Error) as broken:
            halftone.load(tmp_path / "broken.ht")
        assert broken.value.code in ("corrupt file", "unsupported")
        with pytest.raises(halftone.Error) as guard:
            graph(torch.ones(8, 65))
        assert guard.value.code == "guard failed" and "input" in str(guard.value)

    def test_is_a_runtime_error(self):
        assert issubclass(halftone.Error, RuntimeError)
        with pytest.raises(RuntimeError):
            halftone.load("nowhere.ht")

    def test_argument_of_no_known_type_is_named(self, graph):
        with pytest.raises(TypeError, match=r"args\[0\]\['a'\]\[1\] is of type object"):
            graph({"a": [1, object()]})
        with pytest.raises(TypeError, match="keys must be strings"):
            graph({1: 2})

    def test_endless_argument(self, graph):
        endless = []
        endless.append(endless)
        with pytest.raises(ValueError, match="64 deep"):
            graph(endless)

    def test_operators_errors_name_the_node(self):
        class Index(torch.nn.Module):
            def forward(self, x, i):
                return x[i]

        graph = halftone.compile_exported(torch.export.export(Index(), (torch.arange(3), torch.tensor([1]))))
        with pytest.raises(halftone.Error, match="aten::index.*index 7 is out of bounds"):
            graph.session("eager")(torch.arange(3), torch.tensor([7]))

    def test_torchs_errors_stay_torchs(self, model, x):
        with pytest.raises(RuntimeError) as error:
            halftone.Backend("EagerBackend").build(model, None, [x], "no device")
        assert not isinstance(error.value, halftone.Error)

    def test_a_module_that_cannot_be_exported(self):
        class Branch(torch.nn.Module):
            def forward(self, x):
                return x if x.sum() > 0 else -x

        with pytest.raises(halftone.Error, match="Branch cannot be exported by torch.export: ") as error:
            halftone.export(Branch(), torch.ones(2))
        assert error.value.code == "unsupported" and error.value.__cause__ is not None

    def test_export_restores_the_mode(self, x):
        model = mlp().train()
        model[0].eval()
        halftone.export(model, x)
        assert model.training and not model[0].training and model[3].training


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_pickling_is_refused_with_the_reason(graph, model, x, copied):
    backend = halftone.Backend("EagerBackend").build(model, None, [x])
    for thing, reason in ((graph, "save"), (graph.session(), "save"), (backend, "save")):
        with pytest.raises(halftone.Error, match=reason) as error:
            copied(thing)
        assert error.value.code == "unsupported"
