#!/usr/bin/env python3
"""Exports the ResNet-50 of bench/peers/resnet.py, so that Halftone and the peers run the same weights.

    export_resnet.py -o DIR

writes DIR/resnet50.pt2 (any batch) and DIR/resnet50_calibration.safetensors, the data that the peers calibrate with.
Run by the peers' Python: the model is transformers'.
"""
import argparse
import pathlib
import sys

import torch
from safetensors.torch import save_file

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "bench/peers"))
import resnet  # noqa: E402

MAX_BATCH = 64


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="DIR")
    args = parser.parse_args()
    network = resnet.make_network()
    model = network.module.requires_grad_(False)
    batch = torch.export.Dim("batch", min=1, max=MAX_BATCH)
    with torch.no_grad():
        exported = torch.export.export(model, network.inputs(network.export_case), dynamic_shapes={"pixels": {0: batch}})
    args.output.mkdir(parents=True, exist_ok=True)
    save_file({"pixels": torch.cat([pixels for pixels, in network.calibration])}, args.output / "resnet50_calibration.safetensors")
    # Written beside the target and renamed: an interrupted export leaves no half file that a later run would take.
    part = args.output / "resnet50.part.pt2"
    torch.export.save(exported, part)
    part.replace(args.output / "resnet50.pt2")


if __name__ == "__main__":
    main()
