"""A network in PyTorch, and the ways in which other runtimes run it on the CPU.

Used by encoder.py, resnet.py and vit.py. Modules of the runtimes are imported where they are needed: a Python that lacks
one of them can still measure the others.
"""
import copy
import dataclasses
import pathlib
from collections.abc import Callable, Sequence


@dataclasses.dataclass
class Network:
    """What is measured: weights, inputs, and how int8 variants of the runtimes are to be made."""
    module: object                  # torch.nn.Module in evaluation mode, one tensor as its result
    input_names: Sequence[str]
    inputs: Callable                # case -> tuple of tensors
    cases: Sequence[tuple]
    export_case: tuple              # the sizes that it is exported with; dynamic ones must be neither 0 nor 1
    dynamic_sizes: Sequence[dict]   # for each input: dimension -> name of its size
    calibration: Sequence[tuple]    # inputs that static int8 is calibrated with
    is_static: bool = False         # ONNX Runtime's int8: static instead of dynamic quantization
    is_transformer: bool = False    # a hint for OpenVINO's quantizer
    dynamic_int8_ops: Sequence[str] | None = None  # of ONNX Runtime's dynamic quantization; None: all that it can


def as_feed(network, inputs):
    return {name: tensor.numpy() for name, tensor in zip(network.input_names, inputs)}


def to_onnx(network, folder):
    """Writes the network with dynamic sizes into `folder` and returns the path."""
    import torch
    path = pathlib.Path(folder) / "network.onnx"
    sizes = {name: torch.export.Dim(name) for sizes in network.dynamic_sizes for name in sizes.values()}
    shapes = {name: {dimension: sizes[size] for dimension, size in dynamic.items()}
              for name, dynamic in zip(network.input_names, network.dynamic_sizes)}
    torch.onnx.export(network.module, network.inputs(network.export_case), str(path), input_names=list(network.input_names),
                      dynamo=True, external_data=False, verbose=False, dynamic_shapes=shapes)
    return path


def eager(network, folder, threads):
    return network.module


def torch_compile(network, folder, threads):
    import torch
    import torch._inductor.config
    torch._inductor.config.freezing = True
    return torch.compile(copy.deepcopy(network.module), dynamic=False)


def torchao(config_name):
    def make(network, folder, threads):
        import torch
        import torch._inductor.config
        import torchao.quantization as quantization
        torch._inductor.config.freezing = True
        module = copy.deepcopy(network.module)
        quantization.quantize_(module, getattr(quantization, config_name)())
        return torch.compile(module, dynamic=False)
    return make


def ort_session(network, path, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda *inputs: session.run(None, as_feed(network, inputs))[0]


def ort(network, folder, threads):
    return ort_session(network, to_onnx(network, folder), threads)


def ort_int8(network, folder, threads):
    path = to_onnx(network, folder)
    quantized = path.with_suffix(".int8.onnx")
    (quantize_ort_statically if network.is_static else quantize_ort_dynamically)(network, path, quantized)
    return ort_session(network, quantized, threads)


def quantize_ort_dynamically(network, path, quantized):
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    # Sizes that the exporter notes can be wrong after its own optimiser; the quantizer infers them anew.
    exported = onnx.load(path)
    exported.graph.ClearField("value_info")
    onnx.save(exported, path)
    quantize_dynamic(path, quantized, weight_type=QuantType.QInt8, per_channel=True,
                     op_types_to_quantize=list(network.dynamic_int8_ops) if network.dynamic_int8_ops else None)


def quantize_ort_statically(network, path, quantized):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Calibration(CalibrationDataReader):
        def __init__(self):
            self.feeds = iter([as_feed(network, inputs) for inputs in network.calibration])

        def get_next(self):
            return next(self.feeds, None)

    prepared = path.with_suffix(".prepared.onnx")
    quant_pre_process(str(path), str(prepared))
    quantize_static(str(prepared), str(quantized), Calibration(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


def openvino(quantized):
    def make(network, folder, threads):
        import openvino as ov
        core = ov.Core()
        model = core.read_model(to_onnx(network, folder))
        if quantized:
            import nncf
            data = nncf.Dataset(list(network.calibration), lambda inputs: as_feed(network, inputs))
            hint = {"model_type": nncf.ModelType.TRANSFORMER} if network.is_transformer else {}
            model = nncf.quantize(model, data, subset_size=len(network.calibration), **hint)
        compiled = core.compile_model(model, "CPU", {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads})
        request = compiled.create_infer_request()
        return lambda *inputs: request.infer([tensor.numpy() for tensor in inputs], share_inputs=True)[compiled.output(0)]
    return make


@dataclasses.dataclass
class Peer:
    make: Callable               # (network, folder, threads) -> function of the inputs
    modules: Sequence[str] = ()  # that it needs besides torch


ONNX = ("onnx", "onnxscript")
PEERS = {
    "eager": Peer(eager),
    "compile": Peer(torch_compile),
    "ao-int8wo": Peer(torchao("Int8WeightOnlyConfig"), ("torchao",)),
    "ao-int8dq": Peer(torchao("Int8DynamicActivationInt8WeightConfig"), ("torchao",)),
    "ort": Peer(ort, (*ONNX, "onnxruntime")),
    "ort-int8": Peer(ort_int8, (*ONNX, "onnxruntime")),
    "ov": Peer(openvino(quantized=False), (*ONNX, "openvino")),
    "ov-int8": Peer(openvino(quantized=True), (*ONNX, "openvino", "nncf")),
}
