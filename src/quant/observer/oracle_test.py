#!/usr/bin/env python3
"""oracle_test.py TOOL: our observers' scales and zero points beside torch.ao's, on data of many shapes."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch
from safetensors.torch import save_file
from torch.ao.quantization import observer as ao

TOOL = sys.argv[1] if len(sys.argv) > 1 else "observer_tool"
PER_CHANNEL = ("PerChannelMinMaxObserver", "MovingAveragePerChannelMinMaxObserver")
OBSERVERS = [
    {"type": "MinMaxObserver"},
    {"type": "MinMaxObserver", "dtype": "qint8", "qscheme": "per_tensor_symmetric"},
    {"type": "MinMaxObserver", "qscheme": "per_tensor_symmetric"},
    {"type": "MinMaxObserver", "quant_min": 0, "quant_max": 127},
    {"type": "MinMaxObserver", "qscheme": "per_tensor_symmetric", "quant_min": 0, "quant_max": 126},
    {"type": "MinMaxObserver", "dtype": "qint8", "reduce_range": True, "eps": 2**-12},
    {"type": "MovingAverageMinMaxObserver"},
    {"type": "MovingAverageMinMaxObserver", "averaging_constant": 0.3, "dtype": "qint8"},
    {"type": "PerChannelMinMaxObserver"},
    {"type": "PerChannelMinMaxObserver", "dtype": "qint8", "qscheme": "per_channel_symmetric"},
    {"type": "PerChannelMinMaxObserver", "dtype": "qint8", "qscheme": "per_channel_symmetric", "ch_axis": 1},
    {"type": "PerChannelMinMaxObserver", "qscheme": "per_channel_affine_float_qparams"},
    {"type": "MovingAveragePerChannelMinMaxObserver", "ch_axis": 1},
    {"type": "HistogramObserver"},
    {"type": "HistogramObserver", "reduce_range": True},
    {"type": "HistogramObserver", "dtype": "qint8", "eps": 2**-12},
    {"type": "HistogramObserver", "qscheme": "per_tensor_symmetric", "dtype": "qint8"},
    {"type": "HistogramObserver", "bins": 301},
    {"type": "FixedQParamsObserver", "scale": 1 / 256, "zero_point": 0},
]


def samples():
    """Lists of tensors with the same number of channels: bells, outliers, one side only, growing, constant, tiny, wide."""
    made = torch.Generator().manual_seed(0)
    normal = [torch.randn(6, 4, 50, generator=made) for _ in range(5)]
    heavy = [x.pow(5) for x in normal]
    positive = [x.relu() for x in normal]
    growing = [x * 3**i + i for i, x in enumerate(normal)]
    shrinking = list(reversed(growing))
    constant = [torch.full((6, 4), 2.5), torch.full((6, 4), 2.5)]
    from_constant = [torch.zeros(6, 4), normal[0], torch.full((6, 4), 9.0)]
    tiny = [x * 1e-30 for x in normal]
    outlier = [torch.cat([x.flatten(), torch.tensor([80.0] * 24)]).reshape(6, 4, -1) for x in normal]
    exponential = [torch.empty(6, 4, 2000).exponential_(generator=made) for _ in range(3)]
    large = [torch.randn(6, 4, 5000, generator=made) * 7 - 3 for _ in range(12)]
    negative = [-x.abs() - 1 for x in normal]
    return {"normal": normal, "heavy": heavy, "positive": positive, "growing": growing, "shrinking": shrinking, "constant": constant,
            "from_constant": from_constant, "tiny": tiny, "outlier": outlier, "exponential": exponential, "large": large,
            "negative": negative, "one": [normal[0]]}


def python_qparams(config, tensors):
    arguments = {key: getattr(torch, value) if key in ("dtype", "qscheme") else value for key, value in config.items() if key != "type"}
    made = getattr(ao, config["type"])(**arguments)
    for tensor in tensors:
        made(tensor)
    scale, zero_point = made.calculate_qparams()
    return scale.double().flatten().tolist(), zero_point.double().flatten().tolist()


class Oracle(unittest.TestCase):
    def test_scales_and_zero_points(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, tensors in samples().items():
                path = pathlib.Path(folder, f"{name}.safetensors")
                save_file({f"{i:03}": x.contiguous() for i, x in enumerate(tensors)}, path)
                done = subprocess.run([TOOL, path, *map(json.dumps, OBSERVERS)], capture_output=True, text=True, timeout=300)
                self.assertEqual(done.returncode, 0, done.stderr)
                for config, line in zip(OBSERVERS, done.stdout.splitlines(), strict=True):
                    with self.subTest(samples=name, **config):
                        self.compare(config, json.loads(line), *python_qparams(config, tensors))

    def compare(self, config, ours, scale, zero_point):
        self.assertEqual(len(ours["scale"]), len(scale))
        for mine, theirs in zip(ours["scale"], scale):
            self.assertLessEqual(abs(mine - theirs), 1e-6 * abs(theirs))
        if config.get("qscheme") == "per_channel_affine_float_qparams":
            for mine, theirs in zip(ours["zero_point"], zero_point):
                self.assertLessEqual(abs(mine - theirs), 1e-5 * max(1, abs(theirs)))
        else:
            self.assertEqual(ours["zero_point"], zero_point)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
