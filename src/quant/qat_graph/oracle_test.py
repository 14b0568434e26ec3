#!/usr/bin/env python3
"""oracle_test.py TOOL: graphs in training beside torch.ao's prepare_qat_fx: the same weights, data and steps give the same losses."""
import copy
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

os.environ["OMP_NUM_THREADS"] = "1"  # small problems: threads would only wait for each other

import torch
from safetensors.torch import save_file
from torch import nn
from torch.ao import quantization as ao
from torch.ao.quantization import quantize_fx

warnings.filterwarnings("ignore")
TOOL = sys.argv[1] if len(sys.argv) > 1 else "qat_graph_tool"
STEPS, BATCH, RATE, TOLERANCE = 20, 16, 0.01, 1e-3


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3)
        self.head = nn.Linear(8 * 6 * 6, 10)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = torch.relu(self.second(x))
        return self.head(torch.flatten(x, 1))


def problem():
    made = torch.Generator().manual_seed(6)
    net = ConvNet()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=made) * 0.2)
    x = torch.randn(STEPS * BATCH, 3, 8, 8, generator=made)
    labels = (x.flatten(1) @ torch.randn(192, 10, generator=made)).argmax(1)
    return net, x, labels


def ours(net, x, labels):
    with tempfile.TemporaryDirectory() as folder:
        model, data = pathlib.Path(folder, "model.pt2"), pathlib.Path(folder, "data.safetensors")
        with torch.no_grad():
            torch.export.save(torch.export.export(net.eval(), (x[:BATCH],)), model)
        save_file({"x": x, "labels": labels}, data)
        done = subprocess.run([TOOL, model, data, str(STEPS), str(RATE)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [float(line) for line in done.stdout.split()]


def theirs(net, x, labels):
    activation = ao.FakeQuantize.with_args(observer=ao.MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=torch.quint8)
    # Of weights the present range, as convert() takes it: an average with all weight on the newest.
    weight = ao.FakeQuantize.with_args(observer=ao.MovingAveragePerChannelMinMaxObserver, averaging_constant=1.0, quant_min=-128,
                                       quant_max=127, dtype=torch.qint8, qscheme=torch.per_channel_symmetric)
    mapping = ao.QConfigMapping().set_global(ao.QConfig(activation=activation, weight=weight))
    prepared = quantize_fx.prepare_qat_fx(net.train(), mapping, (x[:BATCH],))
    optimizer = torch.optim.SGD(prepared.parameters(), RATE)
    losses = []
    for rows, answers in zip(x.split(BATCH), labels.split(BATCH)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(prepared(rows), answers)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    converted = quantize_fx.convert_to_reference_fx(prepared.eval())
    with torch.no_grad():
        losses.append(nn.functional.cross_entropy(converted(x[:BATCH]), labels[:BATCH]).item())
    return losses


class Oracle(unittest.TestCase):
    def test_losses_and_the_converted_model(self):
        net, x, labels = problem()
        mine, expected = ours(copy.deepcopy(net), x, labels), theirs(net, x, labels)
        self.assertEqual(len(mine), STEPS + 1)
        for step, (a, b) in enumerate(zip(mine, expected, strict=True)):
            # The converted model rounds the last activations once more, after the last step.
            self.assertLessEqual(abs(a - b), (TOLERANCE if step < STEPS else 10 * TOLERANCE) * abs(b), f"step {step}: {a} and {b}")
        self.assertLess(sum(mine[-6:-1]), sum(mine[:5]), "nothing was learned")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
