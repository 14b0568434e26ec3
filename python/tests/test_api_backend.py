"""Backends through their lifecycle, in AITune's terms; tune, autoquant and static int8."""

import json

import pytest
import torch

import halftone
from conftest import mlp, relative_error


@pytest.fixture
def built(model, x):
    config = halftone.TorchAOBackendConfig(quantization="int8dq")
    return halftone.TorchAOBackend(config).build(model, None, [x], torch.device("cpu"), None)


class TestLifecycle:
    def test_build_and_infer(self, built, model, x):
        assert (built.state, built.is_active, built.name, built.device) == ("ACTIVE", True, "QuantBackend", torch.device("cpu"))
        assert relative_error(built.infer(x), model(x)) < 0.03
        assert torch.equal(built(x), built.infer(x))

    def test_build_leaves_the_module(self, model, x):
        before = {name: value.clone() for name, value in model.state_dict().items()}
        halftone.QuantBackend().build(model, None, [x])
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
        assert isinstance(model[0], torch.nn.Linear)

    def test_deactivate_and_activate(self, built, x):
        expected = built.infer(x)
        built.deactivate()
        assert (built.state, built.is_active) == ("INACTIVE", False)
        with pytest.raises(RuntimeError, match="backend should be activated first"):
            built.infer(x)
        built.activate()
        assert torch.equal(built.infer(x), expected)

    def test_refused_calls_are_runtime_errors(self, built, model, x):
        new = halftone.TorchAOBackend()
        for call, reason in (
            (new.activate, "built first"), (new.deactivate, "built first"), (new.to_dict, "built first"), (lambda: new.infer(x), "activated first"),
            (lambda: built.build(model, None, [x]), "only once"), (built.deploy, "loaded from a checkpoint"),
        ):  # fmt: skip
            with pytest.raises(RuntimeError, match=reason) as error:
                call()
            assert error.value.code == "wrong state"

    def test_another_device(self, model, x):
        with pytest.raises(halftone.Error) as error:
            halftone.QuantBackend().build(model, None, [x], "cuda")
        assert error.value.code == "unsupported"

    def test_dict_there_and_back(self, built, model, x):
        state = built.to_dict()
        assert state["type"] == "QuantBackend" and torch.equal(state["module"]["0.weight"], model[0].weight)
        fresh = mlp()
        torch.nn.init.zeros_(fresh[0].weight)
        again = halftone.TorchAOBackend.from_dict(fresh, state)
        assert again.state == "CHECKPOINT_LOADED" and torch.equal(fresh[0].weight, model[0].weight)
        again.activate()
        assert torch.equal(again.infer(x), built.infer(x))

    def test_from_dict_refuses(self, built):
        state = built.to_dict()
        with pytest.raises(halftone.Error):
            halftone.TorchAOBackend.from_dict(None, state)
        with pytest.raises(halftone.Error):
            halftone.TorchAOBackend.from_dict(mlp(), state | {"type": "EagerBackend"})

    def test_save_load_deploy(self, built, x, tmp_path):
        built.save(tmp_path / "backend.ht")
        waiting = halftone.Backend.load(tmp_path / "backend.ht")
        assert waiting.state == "CHECKPOINT_LOADED" and type(waiting) is halftone.QuantBackend
        waiting.deploy(None)
        deployed = halftone.load(tmp_path / "backend.ht")
        for backend in (waiting, deployed):
            assert backend.state == "DEPLOYED" and not backend.is_active
            assert torch.equal(backend(x), built(x))
        with pytest.raises(halftone.Error, match="already deployed"):
            deployed.activate()

    def test_sizes_that_differ_in_data_may_change(self, model, x):
        backend = halftone.Backend("HalftoneBackend").build(model, None, [x, x[:3]])
        assert relative_error(backend(x[:5]), model(x[:5])) < 1e-5

    def test_descriptions(self, built):
        assert built.describe() == "QuantBackend(quantization_config=Int8DynamicActivationInt8WeightConfig())"
        assert built.key() == halftone.QuantBackend(halftone.QuantBackendConfig(quantization="int8dq")).key()
        assert built.describe() in repr(built) and "ACTIVE" in repr(built)
        assert built.config["quantization_config"]["type"] == "Int8DynamicActivationInt8WeightConfig"


class TestConfig:
    def test_both_and_none_are_refused(self):
        with pytest.raises(ValueError, match="Only one of"):
            halftone.TorchAOBackendConfig(quantization="int8wo", quantization_config=halftone.Int8WeightOnlyConfig())
        with pytest.raises(ValueError, match="Either"):
            halftone.TorchAOBackendConfig()

    def test_there_and_back(self, tmp_path):
        config = halftone.TorchAOBackendConfig(quantization_config=halftone.Int4WeightOnlyConfig(group_size=64))
        again = halftone.TorchAOBackendConfig.from_dict(config.to_dict())
        assert again.key() == config.key() and again.describe() == "quantization_config=Int4WeightOnlyConfig(group_size=64)"
        config.to_json(tmp_path / "config.json")
        assert json.loads((tmp_path / "config.json").read_text()) == config.to_dict()

    def test_unknown_scheme(self):
        with pytest.raises(halftone.Error, match="int8wo"):
            halftone.TorchAOBackendConfig(quantization="int8w")


class TestTune:
    def test_report_call_and_file(self, model, x, tmp_path):
        seen = []
        best = halftone.tune(model, [x, x[:4]], schemes=["int8dq"], time_limit=10, progress=lambda *step: seen.append(step))
        names = [row["name"] for row in best.results]
        assert {"eager", "fp32", "int8dq"} <= set(names) and best.report.chosen in names and best.report.chosen in str(best.report)
        assert seen and relative_error(best(x), model(x)) < 0.1
        best.save(tmp_path / "best.ht")
        loaded = halftone.load(tmp_path / "best.ht")
        assert torch.equal(loaded(x), best(x)) and loaded.tuning["chosen"] == best.report.chosen

    def test_metric_decides(self, model, x):
        asked = []

        def never(expected, got):
            asked.append((expected.shape, got.shape))
            return float(torch.equal(expected, got))

        best = halftone.tune(model, [x], "metric", minimum=2.0, metric=never, schemes=["int8dq"], time_limit=5)
        assert asked and not best.report.met

    def test_one_candidate(self, model, x):
        best = halftone.tune(model, [x], "one", candidate="int8dq", time_limit=5, min_cosine=0.9)
        assert {row["name"] for row in best.results if row["verdict"] != "not tried"} <= {"eager", "fp32", "int8dq"}

    def test_dry_run(self, graph, x):
        assert "int8wo" in halftone.tune(graph, [x], schemes=["int8wo"], dry_run=True)

    def test_refusals(self, graph, x):
        with pytest.raises(halftone.Error, match='no strategy "thruput"'):
            halftone.tune(graph, [x], "thruput")
        with pytest.raises(halftone.Error):
            halftone.tune(graph, [x], "latency-budget")
        with pytest.raises(TypeError, match="samples is of type int"):
            halftone.tune(graph, 7)
        with pytest.raises(TypeError, match="model is of type int"):
            halftone.tune(7, [x])


class TestAutoquant:
    def test_in_place_as_the_plan_says(self, model, x):
        expected = model(x)
        assert halftone.autoquant(model, [x], schemes=["int8wo"], min_cosine=0.9, final_comparison=False, time_limit=20) is model
        for name, scheme, _ in model.autoquant_plan.layers:
            layer = model.get_submodule(name)
            assert isinstance(layer, torch.nn.Linear) if scheme == "fp32" else layer.config.scheme == scheme
        assert relative_error(model(x), expected) < 0.1

    def test_by_its_first_call_as_torchaos(self, model, x):
        halftone.autoquant(model, schemes=["int8wo"], final_comparison=False, time_limit=20)
        assert not hasattr(model, "autoquant_plan")
        first, second = model(x), model(x)
        assert len(model.autoquant_plan.layers) == 3 and torch.equal(first, second)

    def test_plans_are_data(self, graph, x):
        halftone.autoquant(graph, [x], schemes=["int8wo"], final_comparison=False, time_limit=20)
        plan = graph.autoquant_plan
        assert halftone.AutoquantPlan.from_json(plan.to_json()) == plan


class TestStaticInt8:
    def net(self):
        torch.manual_seed(1)
        layers = (torch.nn.Conv2d(3, 16, 3), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 3), torch.nn.ReLU())
        return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, 10)).eval()

    def test_near_eager_and_saved(self, tmp_path):
        net, images = self.net(), [torch.randn(2, 3, 12, 12) for _ in range(6)]
        result = halftone.quantize_static(net, images)
        assert result.calibrated == 6
        for image in images[:2]:
            assert relative_error(result.module(image), net(image)) < 0.15
        result.module.save(str(tmp_path / "static.ht"))
        assert torch.equal(halftone.load(tmp_path / "static.ht")(images[0]), result.module(images[0]))
        assert "Conv2d" in str(result) or "conv" in str(result)

    def test_torch_aos_backend_config(self):
        import torch.ao.quantization.quantize_fx  # noqa: F401
        from torch.ao.quantization.backend_config import get_native_backend_config

        net, images = self.net(), [torch.randn(2, 3, 12, 12) for _ in range(4)]
        result = halftone.quantize_static(net, images, backend_config=get_native_backend_config())
        assert relative_error(result.module(images[0]), net(images[0])) < 0.15
