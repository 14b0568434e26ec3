#!/usr/bin/env python3
"""Writes torch.ao's qconfigs and default mappings as JSON, in Halftone's names: python_qconfig.py FOLDER"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "backend_config"))
from python_config import public_name  # noqa: E402

from torch.ao.quantization import qconfig, qconfig_mapping  # noqa: E402

QCONFIGS = ["default", "default_per_channel", "default_dynamic", "per_channel_dynamic", "float16_dynamic", "float16_static",
            "float_qparams_weight_only", "float_qparams_weight_only_4bit", "default_reuse_input", "default_quint8_weight",
            "default_symmetric_qnnpack", "default_per_channel_symmetric_qnnpack"]


def observer(factory):
    """A class, or one with arguments bound to it."""
    made = getattr(factory, "p", factory)
    arguments = dict(getattr(made, "keywords", {}) or {})
    result = {"type": getattr(made, "func", made).__name__}
    for key, value in arguments.items():
        result[key] = str(value).removeprefix("torch.") if key in ("dtype", "qscheme") else value
    return result


def as_json(value):
    return value and {"activation": observer(value.activation), "weight": observer(value.weight)}


def python_name(name):
    """float_qparams_weight_only_4bit is float_qparams_weight_only_qconfig_4bit in Python."""
    return name.removesuffix("_4bit") + "_qconfig_4bit" if name.endswith("_4bit") else f"{name}_qconfig"


def mapping(backend):
    content = qconfig_mapping.get_default_qconfig_mapping(backend).to_dict()
    return {"": as_json(content[""]), "object_type": [[public_name(kind), as_json(value)] for kind, value in content["object_type"]]}


def main():
    folder = pathlib.Path(sys.argv[1])
    named = {"": None, "module_name": [[name, as_json(getattr(qconfig, python_name(name)))] for name in QCONFIGS]}
    (folder / "names.json").write_text(json.dumps(named))
    for backend in ("x86", "fbgemm", "qnnpack", "onednn"):
        (folder / f"{backend}.json").write_text(json.dumps(mapping(backend)))


if __name__ == "__main__":
    main()
