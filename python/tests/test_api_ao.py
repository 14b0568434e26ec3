"""BackendConfig between torch.ao.quantization and Halftone, and what torchao's benchmarks call."""

import operator

import pytest
import torch
import torch.ao.quantization.quantize_fx  # noqa: F401  the configs need what it registers
from torch.ao.quantization import backend_config as ao

import halftone
from conftest import mlp, relative_error

PLACES = {
    "native": "get_native_backend_config", "x86": "get_x86_backend_config", "fbgemm": "get_fbgemm_backend_config",
    "qnnpack": "get_qnnpack_backend_config", "onednn": "get_onednn_backend_config", "executorch": "get_executorch_backend_config",
}  # fmt: skip


def theirs(name):
    import importlib

    return getattr(importlib.import_module(f"torch.ao.quantization.backend_config.{name}"), PLACES[name])()


def fuse_conv2d_relu(is_qat, conv, relu):
    return torch.ao.nn.intrinsic.ConvReLU2d(conv, relu)


def example():
    """The example of torch.ao's documentation of BackendConfig, written anew with its names."""
    dtypes = ao.DTypeConfig(input_dtype=torch.quint8, output_dtype=torch.quint8, weight_dtype=torch.qint8, bias_dtype=torch.float)
    different = ao.ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
    linear = (
        ao.BackendPatternConfig(torch.nn.Linear).set_observation_type(different).add_dtype_config(dtypes).set_root_module(torch.nn.Linear)
        .set_qat_module(torch.ao.nn.qat.Linear).set_reference_quantized_module(torch.ao.nn.quantized.reference.Linear)
    )  # fmt: skip
    conv_relu = (
        ao.BackendPatternConfig((torch.nn.Conv2d, torch.nn.ReLU)).set_observation_type(different).add_dtype_config(dtypes)
        .set_fused_module(torch.ao.nn.intrinsic.ConvReLU2d).set_fuser_method(fuse_conv2d_relu)
    )  # fmt: skip
    return ao.BackendConfig("my_backend").set_backend_pattern_config(linear).set_backend_pattern_config(conv_relu)


class TestBackendConfig:
    @pytest.mark.parametrize("name", PLACES)
    def test_torchs_there_and_back(self, name):
        config = halftone.BackendConfig.from_torch(theirs(name))
        back = config.to_torch()
        assert back.name == theirs(name).name and len(back.configs) == len(theirs(name).configs)
        # What torch.ao says of itself, pattern by pattern; closures are made anew, so they are compared by name.
        again = halftone.BackendConfig.from_torch(back)
        assert again == config
        for got, expected in zip(back.configs, theirs(name).configs, strict=True):
            assert got.pattern == expected.pattern
            assert got.observation_type == expected.observation_type and got.root_module == expected.root_module
            assert [each.to_dict() for each in got.dtype_configs] == [each.to_dict() for each in expected.dtype_configs]

    @pytest.mark.parametrize("name", ["native", "x86"])
    def test_ours_hold_torchs(self, name):
        def by_pattern(config):
            return {str(each.get("pattern", each.get("pattern_complex_format"))): each for each in config.to_dict()["configs"]}

        ours, others = by_pattern(halftone.BackendConfig.builtin(name)), by_pattern(halftone.BackendConfig.from_torch(theirs(name)))
        assert {key: ours.get(key) for key in others} == others

    def test_the_documented_example(self):
        config = halftone.BackendConfig.from_torch(example())
        assert config.name == "my_backend" and len(config.to_dict()["configs"]) == 2
        back = config.to_torch()
        by_pattern = {each.pattern: each for each in back.configs}
        assert by_pattern[(torch.nn.Conv2d, torch.nn.ReLU)].fuser_method is fuse_conv2d_relu
        assert by_pattern[torch.nn.Linear].reference_quantized_module is torch.ao.nn.quantized.reference.Linear

    def test_from_dict_takes_both_forms(self):
        config = halftone.BackendConfig.builtin("native")
        assert halftone.BackendConfig.from_dict(config.to_dict()) == config
        assert halftone.BackendConfig.from_dict(example().to_dict()) == halftone.BackendConfig.from_torch(example())

    def test_unknown_key(self):
        with pytest.raises(halftone.Error):
            halftone.BackendConfig({"name": "x", "configs": [{"patern": "torch.nn.Linear"}]})

    def test_functions_have_names(self):
        config = ao.BackendConfig("x").set_backend_pattern_config(ao.BackendPatternConfig(operator.add).set_dtype_configs([]))
        assert halftone.BackendConfig.from_torch(config).to_dict()["configs"][0]["pattern"] == "operator.add"


class TestOptimizeCtx:
    @pytest.mark.parametrize("quantization, scheme", [("int8dynamic", "int8dq"), ("int8weightonly", "int8wo"), ("int4weightonly", "int4wo")])
    def test_quantizes_once_before_the_first_iteration(self, x, quantization, scheme):
        model, calls = mlp(), []
        expected = model(x)

        def model_iter_fn(module, example_inputs):
            calls.append(module[0].config.scheme)
            return module(*example_inputs)

        run = halftone.torchao_optimize_ctx(quantization)(model_iter_fn)
        first, second = run(model, (x,)), run(model, (x,))
        assert calls == [scheme, scheme] and model._quantized and torch.equal(first, second)
        assert relative_error(first, expected) < 0.2

    def test_noquant_marks_too(self, model, x):
        run = halftone.torchao_optimize_ctx("noquant")(lambda module, inputs: module(*inputs))
        assert torch.equal(run(model, (x,)), model(x)) and model._quantized
        halftone.torchao_optimize_ctx("int8dynamic")(lambda module, inputs: None)(model, (x,))
        assert isinstance(model[0], torch.nn.Linear)

    def test_inputs_by_name(self, model, x):
        run = halftone.torchao_optimize_ctx("int8weightonly")(lambda module, inputs: module(**inputs))
        assert run(model, {"input": x}).shape == (8, 10)

    def test_autoquant(self, model, x):
        run = halftone.torchao_optimize_ctx("autoquant")(lambda module, inputs: module(*inputs))
        assert run(model, (x,)).shape == (8, 10) and len(model.autoquant_plan.layers) == 3

    def test_not_autoquantizable(self):
        run = halftone.torchao_optimize_ctx("autoquant")(lambda module, inputs: module(*inputs))
        model = torch.nn.Sequential(torch.nn.ReLU())
        with pytest.raises(halftone.Error, match="NotAutoquantizable.*Sequential"):
            run(model, (torch.ones(2),))
        assert getattr(model, "_quantized", None) is None

    def test_unknown_name(self):
        with pytest.raises(halftone.Error, match="int8dynamic"):
            halftone.torchao_optimize_ctx("int8")


def test_setup_baseline():
    import torch._dynamo.config as dynamo

    before = dynamo.automatic_dynamic_shapes, dynamo.recompile_limit
    try:
        options = halftone.setup_baseline()
        assert (dynamo.automatic_dynamic_shapes, dynamo.recompile_limit) == (False, 10000)
        assert options["recompile_limit"] == "10000"
    finally:
        dynamo.automatic_dynamic_shapes, dynamo.recompile_limit = before
