"""torch.ao's quantize_fx on one model: which patterns it matched, its scales and zero points, what it computes."""
import copy
import importlib
import pathlib
import sys
import warnings

import torch
from torch import nn
from torch.ao.quantization import QConfigMapping, get_default_qconfig_mapping, qconfig, quantize_fx

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "backend_config"), str(HERE.parent / "qconfig")]
from python_config import pattern, pattern_config, public_name  # noqa: E402
from python_qconfig import as_json  # noqa: E402

warnings.filterwarnings("ignore")
fx_prepare = sys.modules["torch.ao.quantization.fx.prepare"]  # the package has a function of that name


def mapping_of(name):
    if name == "dynamic":
        return QConfigMapping().set_global(qconfig.per_channel_dynamic_qconfig)
    if name == "minmax":
        return QConfigMapping().set_global(qconfig.default_per_channel_qconfig)
    if name == "embedding_4bit":
        return get_default_qconfig_mapping("x86").set_object_type(nn.Embedding, qconfig.float_qparams_weight_only_qconfig_4bit)
    if name == "embedding":
        return (get_default_qconfig_mapping("x86").set_object_type(nn.Embedding, qconfig.float_qparams_weight_only_qconfig)
                .set_object_type(nn.EmbeddingBag, qconfig.float_qparams_weight_only_qconfig))
    if name == "partly":
        return (get_default_qconfig_mapping("x86").set_module_name("head.0", None).set_module_name_regex("nothing.*", None)
                .set_module_name_object_type_order("", torch.nn.functional.linear, 0, qconfig.default_qconfig))
    return get_default_qconfig_mapping(name)


def mapping_json(mapping):
    content = mapping.to_dict()
    return {"": as_json(content[""]), "object_type": [[public_name(kind), as_json(value)] for kind, value in content["object_type"]],
            "module_name": [[name, as_json(value)] for name, value in content["module_name"]],
            "module_name_regex": [[name, as_json(value)] for name, value in content["module_name_regex"]],
            "module_name_object_type_order": [[name, public_name(kind), index, as_json(value)]
                                              for name, kind, index, value in content["module_name_object_type_order"]]}


def backend_of(name):
    return getattr(importlib.import_module(f"torch.ao.quantization.backend_config.{name}"), f"get_{name}_backend_config")()


def backend_json(config):
    return {"name": config.name, "configs": [pattern_config(each) for each in config.configs]}


def prepare(model, mapping, example, backend):
    """prepare_fx, and the matches that it found: last node -> (pattern, root node), in order of execution."""
    found = {}
    original = fx_prepare._find_matches

    def listen(graph, *arguments):
        found.update(original(graph, *arguments))
        return dict(found)

    fx_prepare._find_matches = listen
    try:
        prepared = quantize_fx.prepare_fx(model, mapping, example, backend_config=backend)
    finally:
        fx_prepare._find_matches = original
    return prepared, found


class Reference:
    def __init__(self, model, calibration, test, backend, mapping):
        prepared, found = prepare(copy.deepcopy(model), mapping, calibration[0], backend)
        facts = prepared.meta["_observed_graph_module_attrs"]
        self.scopes, self.observed = facts.node_name_to_scope, facts.observed_node_names
        self.order = {node.name: i for i, node in enumerate(prepared.graph.nodes)}
        self.matches = self.list_matches(found)
        with torch.no_grad():
            for sample in calibration:
                prepared(*sample)
            lowered = quantize_fx.convert_fx(copy.deepcopy(prepared), backend_config=backend)
            reference = quantize_fx.convert_to_reference_fx(prepared, backend_config=backend)
            self.output = reference(*test)
        self.lowered = {name for name, module in lowered.named_modules() if is_lowered(module)}
        self.values, self.weights = self.list_scales(reference)
        self.results = [node for node in reference.graph.nodes if node.op == "output"][0].args[0]

    def step(self, index):
        """The scale of a result that is quantized, else nothing."""
        node = self.results[index] if isinstance(self.results, (tuple, list)) else self.results
        if node.target != "dequantize":
            return None
        by_last = {match["last"]: i for i, match in enumerate(self.matches)}
        maker = by_last.get(node.args[0].args[0].name)
        return self.values[("out", maker)][0].item() if maker is not None else None

    def list_matches(self, found):
        matches = []
        for last in {result[0].name: result[0] for result in found.values()}.values():
            _, _, shape, handler = found[last.name]
            if shape in ("size", "shape"):  # questions about tensors, which an exported graph has answered
                continue
            root = handler.root_node
            layer = root.target if root.op == "call_module" else self.scopes[root.name][0]
            matches.append({"pattern": pattern(shape), "layer": layer, "last": last.name, "root": root.name,
                            "quantized": last.name in self.observed})
        return sorted(matches, key=lambda match: self.order[match["last"]])

    def list_scales(self, reference):
        """Activations: ("out", match) where a match makes the value, else ("in", first match that reads it). Weights: by name."""
        by_last = {match["last"]: i for i, match in enumerate(self.matches)}
        by_root = {match["root"]: i for i, match in enumerate(self.matches)}
        values, weights = {}, {}
        for node in reference.graph.nodes:
            if node.target not in (torch.quantize_per_tensor, torch.quantize_per_channel):
                continue
            source, scale, zero_point = (node.args[0], *(getattr_of(reference, each) for each in node.args[1:3]))
            dequantized = next(iter(node.users))
            readers = [by_root[user.name] for user in dequantized.users if user.name in by_root]
            if source.op == "get_attr" and any(is_weight(user, dequantized) for user in dequantized.users):
                weights[source.target] = (scale, zero_point)
            elif source.name in by_last:
                values[("out", by_last[source.name])] = (scale, zero_point)
            else:
                values[("in", min(readers))] = (scale, zero_point)
        for name, module in reference.named_modules():
            if hasattr(module, "weight_scale"):
                around = name.rpartition(".")[0]
                fused = isinstance(reference.get_submodule(around), torch.ao.nn.intrinsic._FusedModule)
                weights[f"{around if fused else name}.weight"] = (module.weight_scale, module.weight_zero_point)
        return values, weights


def is_lowered(module):
    """A layer that convert_fx made of one with a weight that it quantized."""
    kind = type(module)
    return kind.__module__.startswith("torch.ao.nn") and "quantized" in kind.__module__ and hasattr(module, "weight") and \
        any(word in kind.__name__ for word in ("Conv", "Linear", "Embedding")) and "Packed" not in kind.__name__


def is_weight(user, node):
    return user.target in (torch.nn.functional.conv2d, torch.nn.functional.linear) and len(user.args) > 1 and user.args[1] is node


def getattr_of(model, node):
    value = model
    for part in node.target.split("."):
        value = getattr(value, part)
    return value
