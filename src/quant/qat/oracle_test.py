#!/usr/bin/env python3
"""oracle_test.py TOOL: quantization-aware training beside torchao's and torch.ao's: the same weights, data and steps give the same losses."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

os.environ["OMP_NUM_THREADS"] = "1"  # small problems: threads would only wait for each other

import torch
import torchao.quantization.qat as torchao
from safetensors.torch import save_file
from torch.ao.quantization import FakeQuantize, MovingAveragePerChannelMinMaxObserver
from torchao.quantization import PerAxis, PerGroup

TOOL = sys.argv[1] if len(sys.argv) > 1 else "qat_tool"
STEPS, BATCH, RATE, TOLERANCE = 20, 64, 0.02, 1e-3
INT4 = {"type": "IntxWeightOnlyConfig", "bits": 4, "group_size": 32}
INTEGERS = {2: torch.int2, 3: torch.int3, 4: torch.int4, 8: torch.int8}


def problem():
    made = torch.Generator().manual_seed(5)
    net = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 10))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=made) * 0.15)
    x = torch.randn(STEPS * BATCH, 64, generator=made)
    labels = (x @ torch.randn(64, 10, generator=made)).argmax(1)
    return net, x, labels


def train(net, x, labels):
    optimizer = torch.optim.SGD(net.parameters(), RATE)
    losses = []
    for rows, answers in zip(x.split(BATCH), labels.split(BATCH)):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(rows), answers)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        losses.append(torch.nn.functional.cross_entropy(net(x), labels).item())
    return losses


def ours(config, scales="range"):
    net, x, labels = problem()
    tensors = {"fc1.weight": net[0].weight, "fc1.bias": net[0].bias, "fc2.weight": net[2].weight, "fc2.bias": net[2].bias}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "problem.safetensors")
        save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()} | {"x": x, "labels": labels}, path)
        done = subprocess.run([TOOL, path, json.dumps(config), scales, str(STEPS), str(RATE)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [float(line) for line in done.stdout.split()]


def with_torchao(activations, weights):
    net, x, labels = problem()
    for index in (0, 2):
        net[index] = torchao.FakeQuantizedLinear.from_linear(net[index], activations, weights)
    return net, x, labels


class TorchAoLinear(torch.nn.Linear):
    """torch.ao.nn.qat.Linear without its qconfig."""

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight_fake_quant(self.weight), self.bias)


class Oracle(unittest.TestCase):
    def compare(self, mine, theirs):
        self.assertEqual(len(mine), STEPS + 1)
        for step, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            self.assertLessEqual(abs(a - b), TOLERANCE * abs(b), f"step {step}: {a} and {b}")
        self.assertLess(mine[-2], mine[0] * 0.99, "nothing was learned")
        plain = train(*problem())
        self.assertGreater(max(abs(a - b) / b for a, b in zip(mine, plain)), 2e-4, "no weight was rounded")

    def test_weight_only(self):
        for bits, group in ((4, 32), (2, 32), (3, 32), (4, 0), (8, 32)):
            with self.subTest(bits=bits, group=group):
                granularity = PerGroup(group) if group else PerAxis(0)
                weights = torchao.IntxFakeQuantizeConfig(INTEGERS[bits], granularity, is_symmetric=True)
                config = {"type": "IntxWeightOnlyConfig", "bits": bits, "group_size": group}
                self.compare(ours(config), train(*with_torchao(None, weights)))

    def test_int4wo_is_that_too(self):
        self.assertEqual(ours({"type": "Int4WeightOnlyConfig"}), ours(INT4))

    def test_int8_dynamic_activations(self):
        activations = torchao.IntxFakeQuantizeConfig(torch.int8, "per_token", is_symmetric=False)
        weights = torchao.IntxFakeQuantizeConfig(torch.int8, PerAxis(0), is_symmetric=True, eps=torch.finfo(torch.float32).eps)
        config = {"type": "Int8DynamicActivationInt8WeightConfig"}
        self.compare(ours(config), train(*with_torchao(activations, weights)))

    def test_learned_scales(self):
        """torchao's range learning, with the factor of the LSQ paper on the gradient of each scale."""
        weights = torchao.IntxFakeQuantizeConfig(torch.int4, PerGroup(32), is_symmetric=True, is_dynamic=False, range_learning=True)
        net, x, labels = with_torchao(None, weights)
        torchao.initialize_fake_quantizers(net, (x[:1],))
        for index in (0, 2):
            net[index].weight_fake_quantizer.scale.register_hook(lambda gradient: gradient / math.sqrt(32 * 7))
        self.compare(ours(INT4, "learned"), train(net, x, labels))

    def test_moving_averages(self):
        """torch.ao's FakeQuantize on weights, one range a channel. Its symmetric scale is max|w| / 127.5 too."""
        net, x, labels = problem()
        for index in (0, 2):
            linear = TorchAoLinear(net[index].in_features, net[index].out_features)
            linear.weight, linear.bias = net[index].weight, net[index].bias
            linear.weight_fake_quant = FakeQuantize(
                MovingAveragePerChannelMinMaxObserver, quant_min=-8, quant_max=7, dtype=torch.qint8,
                qscheme=torch.per_channel_symmetric, ch_axis=0)
            net[index] = linear
        net.train()
        config = {"type": "IntxWeightOnlyConfig", "bits": 4, "group_size": 0}
        mine = ours(config, "average")
        # In evaluation torch.ao's module goes on observing; that step is ours alone.
        self.compare(mine[:-1] + [0], train(net, x, labels)[:-1] + [0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
