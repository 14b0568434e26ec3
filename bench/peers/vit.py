#!/usr/bin/env python3
"""The peers on the ViT-B/16 of scripts/export_vit.py, at the batches of vision_bench."""
import pathlib
import sys

import measuring
from network import Network

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
CASES = ((1,), (8,))


def make_network():
    import export_vit
    # ONNX Runtime: linears only, as int8dq; its convolutions are slower in dynamic int8.
    return Network(export_vit.vit(), ("pixels",), lambda case: (export_vit.images(*case),), CASES, export_case=(2,),
                   dynamic_sizes=({0: "batch"},), calibration=[(export_vit.images(2),)] * 4, is_transformer=True,
                   dynamic_int8_ops=("MatMul", "Gemm"))


if __name__ == "__main__":
    sys.exit(measuring.main(__file__, __doc__, make_network, "eager,ort,ort-int8,ov"))
