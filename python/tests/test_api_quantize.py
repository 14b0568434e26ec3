"""quantize_ on Python modules and on graphs: the two give the same numbers, and errors change nothing."""

import copy
import pickle

import pytest
import torch

import halftone
from conftest import mlp, relative_error
from halftone.nn import QuantizedEmbedding, QuantizedLinear

SCHEMES = [
    "int8wo", "int8dq", "int4wo", "fp8wo", "fp8dq", "bf16wo", halftone.IntxWeightOnlyConfig(bits=3), halftone.Int4WeightOnlyConfig(group_size=64)
]  # fmt: skip
WITHIN = {"int8wo": 0.02, "int8dq": 0.03, "fp8wo": 0.06, "fp8dq": 0.08, "bf16wo": 0.01}


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
class TestSchemes:
    def test_a_module_and_its_graph_give_the_same(self, scheme, model, graph, x):
        halftone.quantize_(graph, scheme)
        halftone.quantize_(model, scheme)
        assert relative_error(model(x), graph.session("eager")(x)) < 1e-5

    def test_near_fp32(self, scheme, x):
        model = mlp()
        expected = model(x)
        halftone.quantize_(model, scheme)
        assert 0 < relative_error(model(x), expected) < WITHIN.get(scheme, 0.5)

    def test_dequantized_weight_is_what_is_multiplied(self, scheme, x):
        model = torch.nn.Sequential(torch.nn.Linear(64, 32))
        halftone.quantize_(model, scheme)
        by_hand = torch.nn.functional.linear(x, model[0].weight, model[0].bias)
        assert relative_error(model(x), by_hand) < 0.05  # activations may be rounded too

    def test_export_keeps_layers_quantized(self, scheme, model, x):
        halftone.quantize_(model, scheme)
        exported = halftone.compile_exported(torch.export.export(model, (x,)))
        assert exported.graph_text.count("halftone::") == 3 and "aten::linear" not in exported.graph_text
        assert relative_error(exported(x), model(x)) < 1e-3


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(40, 64)
        self.inner = torch.nn.Linear(64, 64, bias=False)
        self.again = torch.nn.Linear(64, 64, bias=False)
        self.again.weight = self.inner.weight

    def forward(self, ids):
        return self.again(self.inner(self.embedding(ids)))


class TestModules:
    def test_exported_quantized_module_to_ht(self, model, x, tmp_path):
        halftone.quantize_(model, "int8dq")
        expected = model(x)
        halftone.export(model, [x, x[:2]]).save(str(tmp_path / "model.ht"))
        assert relative_error(halftone.load(tmp_path / "model.ht")(x), expected) < 1e-5

    def test_torch_compile_keeps_layers_quantized(self, model, x):
        halftone.quantize_(model, "int8wo")
        seen = []

        def backend(gm, example_inputs):
            seen.extend(str(node.target) for node in gm.graph.nodes if node.op == "call_function")
            return gm.forward

        compiled = torch.compile(model, backend=backend, fullgraph=True)
        assert torch.equal(compiled(x), model(x))
        assert sum("int8_weight_only_linear" in name for name in seen) == 3

    def test_filter_fn_has_torchaos_arguments(self, model):
        halftone.quantize_(model, "int8wo", lambda module, fqn: isinstance(module, torch.nn.Linear) and fqn != "3")
        assert [type(model[i]) for i in (0, 3, 5)] == [QuantizedLinear, torch.nn.Linear, QuantizedLinear]

    def test_filter_fn_on_graphs(self, graph):
        report = halftone.quantize_(graph, "int8wo", lambda layer, fqn: layer.name == fqn == "3")
        assert "1 quantized, 2 kept" in repr(report)

    def test_overrides_include_exclude(self, model):
        halftone.quantize_(model, "int8wo", exclude="5", overrides={"3": halftone.Int4WeightOnlyConfig(group_size=64)})
        assert model[0].config == halftone.QuantConfig("int8wo") and model[3].config.scheme == "Int4WeightOnlyConfig(group_size=64)"
        assert isinstance(model[5], torch.nn.Linear)

    def test_embeddings(self):
        model = Tied()
        ids = torch.arange(10)
        expected = model(ids)
        report = halftone.quantize_(model, "int8wo", embeddings=True)
        assert isinstance(model.embedding, QuantizedEmbedding) and "3 quantized" in repr(report)
        assert relative_error(model(ids), expected) < 0.03

    def test_tied_weights_stay_tied(self):
        model = Tied()
        halftone.quantize_(model, "int8wo")
        assert model.again.quantized_weight.data_ptr() == model.inner.quantized_weight.data_ptr()

    def test_report(self, model):
        report = halftone.quantize_(model, "int4wo")
        assert report.bytes_after < 0.3 * report.bytes_before
        held = sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers()))
        assert report.bytes_after == held
        for name in ("0", "3", "5"):
            assert f" {name} " in report.to_text() or f"\n{name} " in report.to_text()

    def test_dry_run(self, model):
        before = copy.deepcopy(model.state_dict())
        assert "3 quantized" in repr(halftone.quantize_(model, "int8wo", dry_run=True))
        assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())

    def test_again_with_the_same_and_with_another_config(self, model):
        halftone.quantize_(model, "int8wo")
        layers = list(model)
        halftone.quantize_(model, "int8wo")
        assert layers == list(model)
        with pytest.raises(halftone.Error, match="0 is quantized already"):
            halftone.quantize_(model, "int4wo")

    def test_attention_projections_are_kept_with_the_reason(self):
        layer = torch.nn.TransformerEncoderLayer(64, 4, 64, dropout=0.0, batch_first=True).eval()
        x = torch.randn(2, 5, 64)
        expected = layer(x)
        report = halftone.quantize_(layer, "int8wo")
        assert "its owner reads the weight itself" in report.to_text()
        # PyTorch's fast path reads weights past the layers' forward, so it must still get numbers.
        assert relative_error(layer(x), expected) < 0.03

    def test_state_dict_and_copies(self, model, x):
        halftone.quantize_(model, "int4wo")
        expected = model(x)
        fresh = mlp()
        for parameter in fresh.parameters():
            torch.nn.init.zeros_(parameter)
        halftone.quantize_(fresh, "int4wo")
        fresh.load_state_dict(model.state_dict())
        for other in (fresh, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert torch.equal(other(x), expected)

    def test_gradients_reach_inputs(self, model, x):
        halftone.quantize_(model, "int8wo")
        x.requires_grad_()
        model(x).sum().backward()
        by_hand = x.detach().clone().requires_grad_()
        plain = mlp()
        for index in (0, 3, 5):
            plain[index].weight.data = model[index].weight
        plain(by_hand).sum().backward()
        assert relative_error(x.grad, by_hand.grad) < 1e-4

    def test_bfloat16(self, x):
        model = mlp().to(torch.bfloat16)
        expected = model(x.bfloat16())
        halftone.quantize_(model, "int8wo")
        got = model(x.bfloat16())
        assert got.dtype == torch.bfloat16 and relative_error(got.float(), expected.float()) < 0.05

    def test_to_dtype_keeps_the_weight(self, model, x):
        halftone.quantize_(model, "int8wo")
        expected = model(x)
        model.to(torch.bfloat16).to(torch.float32)
        assert model[0].quantized_scale.dtype == torch.float32
        assert relative_error(model(x), expected) < 0.02


class TestRefusals:
    def test_nothing_changes_on_an_error(self, model):
        torch.nn.init.constant_(model[5].weight, float("nan"))
        before = list(model)
        with pytest.raises(halftone.Error, match="5"):
            halftone.quantize_(model, "int8wo")
        assert list(model) == before

    def test_nothing_to_quantize(self):
        with pytest.raises(halftone.Error, match="nothing to quantize in ReLU"):
            halftone.quantize_(torch.nn.ReLU(), "int8wo")

    def test_the_model_itself(self):
        with pytest.raises(halftone.Error, match="put it into a module"):
            halftone.quantize_(torch.nn.Linear(64, 64), "int8wo")

    def test_unknown_names(self, model):
        with pytest.raises(halftone.Error, match="int8wo") as error:
            halftone.quantize_(model, "int8w")
        assert error.value.code == "invalid argument"
        with pytest.raises(halftone.Error, match="no layer is called"):
            halftone.quantize_(model, "int8wo", exclude="fc1")
        with pytest.raises(halftone.Error, match="device is cuda"):
            halftone.quantize_(model, "int8wo", None, "cuda")
        with pytest.raises(TypeError, match="config is of type int"):
            halftone.quantize_(model, 8)
        with pytest.raises(halftone.Error, match="group_size must be one of"):
            halftone.quantize_(model, halftone.Int4WeightOnlyConfig(group_size=33))

    def test_hooks_keep_a_layer(self, model):
        model[0].register_forward_hook(lambda *_: None)
        assert "it has hooks" in halftone.quantize_(model, "int8wo").to_text()
        assert isinstance(model[0], torch.nn.Linear)

    def test_an_exception_in_filter_fn_comes_through(self, model, graph):
        for subject in (model, graph):
            with pytest.raises(ZeroDivisionError):
                halftone.quantize_(subject, "int8wo", lambda *_: 1 / 0)


class TestTorchao:
    """torchao's own numbers, where it is there."""

    def test_int8_weights_are_torchaos(self, model):
        quantization = pytest.importorskip("torchao.quantization")
        theirs = mlp()
        quantization.quantize_(theirs, quantization.Int8WeightOnlyConfig())
        halftone.quantize_(model, "int8wo")
        for index in (0, 3, 5):
            assert relative_error(model[index].weight, theirs[index].weight.dequantize()) < 1e-3

    def test_the_names_of_configs(self):
        quantization = pytest.importorskip("torchao.quantization")
        for name in (name for name in halftone.__all__ if name.endswith("Config")):
            if name.startswith(("Int", "Float8")):
                assert hasattr(quantization, name), name

    def test_torchaos_config_is_refused_by_name(self, model):
        quantization = pytest.importorskip("torchao.quantization")
        with pytest.raises(TypeError, match="halftone.Int8WeightOnlyConfig"):
            halftone.quantize_(model, quantization.Int8WeightOnlyConfig())


class TestDiagnose:
    def test_orders_layers_by_the_harm_that_each_does_alone(self, x):
        expected = mlp()(x)

        def noise(name):
            model = mlp()
            halftone.quantize_(model, "noquant", overrides={name: "int4wo"})
            return float((model(x) - expected).square().sum())

        alone = {name: noise(name) for name in ("0", "3", "5")}
        layers = halftone.diagnose(mlp(), [x], "int4wo")["layers"]
        assert [layer["name"] for layer in layers] == sorted(alone, key=alone.get, reverse=True)
        for layer in layers:
            assert abs(layer["share"] - alone[layer["name"]] / sum(alone.values())) < 0.02

    def test_is_what_quantizing_does(self, model, x):
        diagnosis = halftone.diagnose(model, [x], "int8wo")
        expected = model(x).detach()
        halftone.quantize_(model, "int8wo")
        cosine = torch.nn.functional.cosine_similarity(model(x).detach().flatten(), expected.flatten(), dim=0)
        assert abs(diagnosis["result"]["cosine"] - float(cosine)) < 1e-4
        error = float((model(x) - expected).abs().max())
        assert abs(diagnosis["result"]["max_error"] - error) < 0.1 * error

    def test_samples_of_the_file(self, graph):
        assert len(halftone.diagnose(graph, None, "int8wo")["layers"]) == 3
