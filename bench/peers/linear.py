#!/usr/bin/env python3
"""One linear layer in the peers' weight formats: a JSON line for each, {"peer", "case": [rows, inputs, outputs], "ms"}.

Several layers of the same size take turns, so that weights come from memory and not from the last-level cache.
"""
import argparse
import itertools
import json
import sys

import measuring

LAYERS = 6
ROWS = (1, 8, 32, 128)


def fp32_layers(x, weights, threads):
    import torch
    return [lambda weight=weight: torch.nn.functional.linear(x, weight) for weight in weights]


def matmul_model(x, weight):
    """ONNX: y = x · w, with the weight as a constant of k rows."""
    from onnx import TensorProto, helper, numpy_helper
    constant = numpy_helper.from_array(weight.t().contiguous().numpy(), "w")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [len(x), columns])
            for name, columns in (("x", weight.shape[1]), ("y", weight.shape[0]))]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "linear", ends[:1], ends[1:], [constant])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def ort_layers(bits):
    """Weights in blocks of 32, activations quantized to int8 (accuracy level 4)."""
    def make(x, weights, threads):
        import onnxruntime
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        feed, layers = {"x": x.numpy()}, []
        for weight in weights:
            quantizer = MatMulNBitsQuantizer(matmul_model(x, weight), bits=bits, block_size=32, is_symmetric=True, accuracy_level=4)
            quantizer.process()
            session = onnxruntime.InferenceSession(quantizer.model.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            layers.append(lambda session=session: session.run(None, feed))
        return layers
    return make


PEERS = {"fp32": fp32_layers, "ort-int4": ort_layers(4), "ort-int8": ort_layers(8)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=",".join(PEERS), metavar="NAME,…", help="(default: %(default)s)")
    parser.add_argument("--size", type=int, default=4096, help="inputs and outputs of the layer (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1, help="for each peer and number of rows (default: %(default)s)")
    args = parser.parse_args()
    peers = args.peers.split(",")
    for peer in peers:
        if peer not in PEERS:
            parser.error(f"unknown peer {peer!r}; known: {', '.join(PEERS)}")
    measuring.be_quiet()
    import torch
    torch.set_num_threads(args.threads)
    with torch.inference_mode():
        for rows in ROWS:
            x = torch.randn(rows, args.size)
            weights = [torch.randn(args.size, args.size) * 0.02 for _ in range(LAYERS)]
            for peer in peers:
                turns = itertools.cycle(PEERS[peer](x, weights, args.threads))
                ms = measuring.median_ms(lambda: next(turns)(), args.seconds)
                print(json.dumps({"peer": peer, "case": [rows, args.size, args.size], "ms": round(ms, 3)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
