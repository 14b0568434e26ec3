#!/usr/bin/env python3
"""The peers on the ViT-B/16 of export_vit.py: one JSON line a measurement, {"peer", "case", "ms", "cos"}.

Run by a Python that has them (torch, onnxruntime, onnx, onnxscript, and openvino where it is wanted); one that cannot be
imported is named on stderr and left out. A process each, because runtimes keep threads.
"""
import argparse
import importlib.util
import json
import logging
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import torch

import export_vit

BATCHES = (1, 8)
MODULES = {"eager": "torch", "ort": "onnxruntime", "ort-int8": "onnxruntime", "ov": "openvino"}


def median_ms(run, seconds):
    run(), run()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def onnx_file(model, folder):
    path = folder / "vit.onnx"
    torch.onnx.export(model, (export_vit.images(2),), str(path), input_names=["pixels"], dynamo=True, external_data=False,
                      verbose=False, dynamic_shapes={"pixels": {0: torch.export.Dim("batch")}})
    return path


def ort_runner(path, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda pixels: session.run(None, {"pixels": pixels.numpy()})[0]


def ov_runner(path, threads):
    import openvino
    core = openvino.Core()
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}
    compiled = core.compile_model(core.read_model(path), "CPU", settings)
    request = compiled.create_infer_request()
    return lambda pixels: request.infer([pixels.numpy()], share_inputs=True)[compiled.output(0)]


def make_runner(peer, model, folder, threads):
    if peer == "eager":
        return model
    path = onnx_file(model, folder)
    if peer == "ov":
        return ov_runner(path, threads)
    if peer == "ort-int8":
        from onnxruntime.quantization import QuantType, quantize_dynamic
        import onnx
        quantized = path.with_suffix(".int8.onnx")
        # The exporter notes shapes that its own optimiser makes wrong; the quantizer infers them anew.
        exported = onnx.load(path)
        exported.graph.ClearField("value_info")
        onnx.save(exported, path)
        # Linears only, as int8dq: convolutions are slower in dynamic int8.
        quantize_dynamic(path, quantized, weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul", "Gemm"])
        path = quantized
    return ort_runner(path, threads)


def measure(peer, args):
    torch.set_num_threads(args.threads)
    model = export_vit.vit()
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        run = make_runner(peer, model, pathlib.Path(folder), args.threads)
        for batch in BATCHES:
            pixels = export_vit.images(batch)
            answer = torch.as_tensor(run(pixels)).float()
            cosine = torch.nn.functional.cosine_similarity(answer, model(pixels)).mean().item()
            ms = median_ms(lambda: run(pixels), args.seconds)
            print(json.dumps({"peer": peer, "case": [batch], "ms": round(ms, 3), "cos": round(cosine, 5)}), flush=True)


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default="eager,ort,ort-int8,ov")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3, help="for each peer and batch")
    args = parser.parse_args()
    peers = args.peers.split(",")
    for peer in peers:
        if peer not in MODULES:
            parser.error(f"unknown peer {peer!r}; known: {', '.join(MODULES)}")
        if importlib.util.find_spec(MODULES[peer]) is None:
            print(f"vision_peers: no {MODULES[peer]} in this Python: {peer} is not measured", file=sys.stderr)
        elif len(peers) == 1:
            measure(peer, args)
        else:
            subprocess.run([sys.executable, __file__, "--peers", peer, "--threads", str(args.threads), "--seconds",
                            str(args.seconds)], check=True)


if __name__ == "__main__":
    main()
