#!/usr/bin/env python3
"""Exports the ResNet-50 that the peers' vision.py measures, so that we and the peers run the same weights.

    export_resnet.py -o DIR --peers DIR

writes DIR/resnet50.pt2 (any batch) and DIR/resnet50_calibration.safetensors, the data that the peers calibrate with.
Run by the peers' Python: the model is transformers'.
"""
import argparse
import pathlib
import sys

import torch
from safetensors.torch import save_file

MAX_BATCH = 64
CALLS, CALL_BATCH = 4, 2  # as vision.py's readers have them


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--peers", type=pathlib.Path, required=True, metavar="DIR", help="where vision.py is")
    args = parser.parse_args()
    sys.path.insert(0, str(args.peers))
    import vision

    model = vision.settle(vision.Classifier()).requires_grad_(False)
    batch = torch.export.Dim("batch", min=1, max=MAX_BATCH)
    with torch.no_grad():
        exported = torch.export.export(model, (vision.inputs(2),), dynamic_shapes={"pixels": {0: batch}})
    args.output.mkdir(parents=True, exist_ok=True)
    save_file({"pixels": torch.cat([vision.inputs(CALL_BATCH)] * CALLS)}, args.output / "resnet50_calibration.safetensors")
    # Written beside the target and renamed: an interrupted export leaves no half file that a later run would take.
    part = args.output / "resnet50.part.pt2"
    torch.export.save(exported, part)
    part.replace(args.output / "resnet50.pt2")


if __name__ == "__main__":
    main()
