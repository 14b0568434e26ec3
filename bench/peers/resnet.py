#!/usr/bin/env python3
"""The peers on ResNet-50 at 224 x 224, fp32 and static int8, with weights of a fixed seed.

scripts/export_resnet.py writes the same network and the same calibration data for Halftone.
"""
import sys

import measuring
from network import Network

CASES = ((1,), (8,))
SIZE = 224
CALIBRATION_BATCH, CALIBRATION_CALLS = 2, 4


def noise(batch, seed):
    import torch
    return torch.randn(batch, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(seed))


def images(batch):
    return noise(batch, seed=1)


def classifier():
    """Random weights, but batch norms that have seen data: activations then have the ranges of a trained network."""
    import torch
    from transformers import ResNetConfig, ResNetForImageClassification

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = ResNetForImageClassification(ResNetConfig(num_labels=1000))

        def forward(self, pixels):
            return self.net(pixel_values=pixels).logits

    torch.manual_seed(0)
    model = Classifier().train()
    with torch.no_grad():
        for seed in range(3):
            model(noise(8, seed))
    return model.eval()


def make_network():
    return Network(classifier(), ("pixels",), lambda case: (images(*case),), CASES, export_case=(2,), dynamic_sizes=({0: "batch"},),
                   calibration=[(images(CALIBRATION_BATCH),)] * CALIBRATION_CALLS, is_static=True)


if __name__ == "__main__":
    sys.exit(measuring.main(__file__, __doc__, make_network, "eager,compile,ort,ort-int8,ov,ov-int8"))
