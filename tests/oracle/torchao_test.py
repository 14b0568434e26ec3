#!/usr/bin/env python3
"""The integers and scales of Halftone's weights against those of torchao 0.18, bit for bit.

usage: torchao_test.py QUANTIZE_TENSORS
Exits with 77 (skipped), after a printed line, where torchao cannot be imported.
"""
import json
import os
import subprocess
import sys
import tempfile
import types

import torch
from safetensors.torch import load_file, save_file

try:
    import torchao
    from torchao.quantization import (Float8WeightOnlyConfig, Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig,
                                      IntxWeightOnlyConfig, quantize_)
    from torchao.quantization.granularity import PerAxis, PerGroup
    from torchao.quantization.quant_primitives import MappingType
except ImportError as error:
    print(f"torchao_test: skipped, torchao cannot be imported: {error}")
    sys.exit(77)

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def special_weights():
    """name -> float32 [n, k]; k is a multiple of 256 where groups are asked for."""
    generator = torch.Generator().manual_seed(7)
    normal = torch.randn(48, 512, generator=generator)
    zero_rows = torch.randn(6, 256, generator=generator)
    zero_rows[1] = 0
    zero_rows[4, :64] = 0
    outliers = torch.randn(16, 256, generator=generator)
    outliers[3, 7], outliers[5, 200], outliers[9, 0] = 300.0, -1000.0, 65000.0
    ties = (torch.arange(16 * 256, dtype=torch.float32) % 31 - 15).reshape(16, 256) / 2
    one_sided = torch.rand(8, 256, generator=generator) + 0.5
    yield "normal", normal
    yield "small", normal * 1e-3
    yield "zero_rows", zero_rows
    yield "outliers", outliers
    yield "ties", ties
    yield "positive", one_sided
    yield "negative", -one_sided
    yield "denormals", torch.randn(4, 256, generator=generator) * 1e-40
    yield "near_smallest_scale", torch.randn(32, 256, generator=generator) * torch.logspace(-8, -4, 32).unsqueeze(1)
    yield "large", torch.randn(4, 256, generator=generator) * 1e4
    yield "one_element", torch.tensor([[0.7]])
    yield "k_1", torch.randn(5, 1, generator=generator)
    yield "odd", torch.randn(7, 33, generator=generator)


def weights(multiple_of):
    """Of every type; those whose k the groups do not divide are left out."""
    for name, weight in special_weights():
        if weight.shape[1] % multiple_of == 0:
            for type_name, dtype in TYPES.items():
                yield f"{name}_{type_name}", weight.to(dtype)


def by_halftone(program, config, tensors):
    with tempfile.TemporaryDirectory() as folder:
        source, result = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.safetensors")
        save_file(tensors, source)
        subprocess.run([program, source, result, json.dumps(config)], check=True)
        return load_file(result)


def by_torchao(config, weight):
    """qdata, scale and zero_point (where it has one). torchao 0.18 cannot take k = 1: a column of zeros, which changes neither
    scales nor the other integers, is added for it and taken away again."""
    if weight.shape[1] == 1:
        wide = by_torchao(config, torch.cat([weight, torch.zeros_like(weight)], 1))
        return types.SimpleNamespace(**dict(vars(wide), qdata=wide.qdata[:, :1]))
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=weight.dtype)
    linear.weight = torch.nn.Parameter(weight.clone(), requires_grad=False)
    quantize_(linear, config)
    weight = linear.weight
    return types.SimpleNamespace(qdata=weight.qdata, scale=weight.scale, zero_point=getattr(weight, "zero_point", None))


def unpack(packed, bits, k):
    """Densely packed two's complement integers, the first one lowest."""
    stream = ((packed.to(torch.int32).unsqueeze(2) >> torch.arange(8)) & 1).flatten(1)[:, :k * bits]
    values = (stream.reshape(-1, k, bits) << torch.arange(bits)).sum(2)
    return (values - (values >= 1 << (bits - 1)).int() * (1 << bits)).to(torch.int8)


class Check:
    def __init__(self):
        self.compared, self.failures = 0, []

    def same(self, what, ours, theirs):
        self.compared += ours.numel()
        if ours.shape != theirs.shape:
            self.failures.append(f"{what}: shape {tuple(ours.shape)}, torchao {tuple(theirs.shape)}")
        elif not torch.equal(ours, theirs):
            at = tuple((ours != theirs).nonzero()[0].tolist())
            self.failures.append(f"{what}: {(ours != theirs).sum()} differ, first at {at}: {ours[at]} and {theirs[at]}")

    def true(self, what, condition):
        if not condition:
            self.failures.append(what)


def check_int8(program, check):
    for config, theirs_config in (({"type": "Int8WeightOnlyConfig"}, Int8WeightOnlyConfig()),
                                  ({"type": "Int8DynamicActivationInt8WeightConfig"}, Int8DynamicActivationInt8WeightConfig())):
        tensors = dict(weights(1))
        parts = by_halftone(program, config, tensors)
        for name, weight in tensors.items():
            theirs = by_torchao(theirs_config, weight)
            check.same(f"{config['type']} {name} integers", parts[f"{name}.weight"], theirs.qdata)
            check.same(f"{config['type']} {name} scales", parts[f"{name}.scale"], theirs.scale.squeeze(1))


def check_groups(program, check, config, granularity, multiple_of, bits):
    mapping = MappingType.SYMMETRIC if config["symmetric"] else MappingType.ASYMMETRIC
    theirs_config = IntxWeightOnlyConfig(getattr(torch, f"int{bits}"), granularity, mapping_type=mapping)
    tensors = dict(weights(multiple_of))
    parts = by_halftone(program, config, tensors)
    for name, weight in tensors.items():
        theirs, what = by_torchao(theirs_config, weight), f"{json.dumps(config)} {name}"
        check.same(f"{what} integers", unpack(parts[f"{name}.weight"], bits, weight.shape[1]), theirs.qdata)
        check.same(f"{what} scales", parts[f"{name}.scale"], theirs.scale.float())
        if not config["symmetric"]:
            check.same(f"{what} zero points", parts[f"{name}.zero_point"], theirs.zero_point)


def check_int4_and_intx(program, check):
    for symmetric in (True, False):
        for group in (32, 64, 128, 256):
            config = {"type": "Int4WeightOnlyConfig", "group_size": group, "symmetric": symmetric}
            check_groups(program, check, config, PerGroup(group), group, 4)
        for bits in range(2, 9):
            config = {"type": "IntxWeightOnlyConfig", "bits": bits, "group_size": 32, "symmetric": symmetric}
            check_groups(program, check, config, PerGroup(32), 32, bits)
            config = dict(config, group_size=0)
            check_groups(program, check, config, PerAxis(0), 1, bits)


def float8_steps(tensor):
    """Position on the line of all float8 numbers: neighbours differ by one."""
    bits = tensor.view(torch.uint8).int()
    return torch.where(bits >= 128, 128 - bits, bits)


def check_float8(program, check):
    tensors = dict(weights(1))
    parts = by_halftone(program, {"type": "Float8WeightOnlyConfig"}, tensors)
    for name, weight in tensors.items():
        theirs = by_torchao(Float8WeightOnlyConfig(), weight)
        ours, scale = parts[f"{name}.weight"], theirs.scale.squeeze(1)
        check.true(f"fp8wo {name}: finite", parts[f"{name}.dequantized"].isfinite().all())
        # torchao gives NaN for rows of zeros, and its scales run out of digits where weight / 448 is denormal in the weight's
        # type: there is nothing to compare with.
        usable = scale >= torch.finfo(weight.dtype).smallest_normal
        steps = (float8_steps(ours) - float8_steps(theirs.qdata)).abs()[usable]
        check.compared += steps.numel()
        check.true(f"fp8wo {name}: within one step, {steps.max() if steps.numel() else 0} seen", (steps <= 1).all())
        if weight.dtype == torch.float32:
            check.same(f"fp8wo {name} scales", parts[f"{name}.scale"][usable], scale[usable])


def main():
    program, check = sys.argv[1], Check()
    check_int8(program, check)
    check_int4_and_intx(program, check)
    check_float8(program, check)
    for failure in check.failures[:40]:
        print(failure, file=sys.stderr)
    print(f"torchao {torchao.__version__}: {check.compared} numbers compared, {len(check.failures)} differences")
    return 1 if check.failures or check.compared < 100_000 else 0


if __name__ == "__main__":
    sys.exit(main())
