#!/usr/bin/env python3
"""Interpreter cost: the MiniLM encoder at (1,16), `halftone run --backend eager` against PyTorch eager from Python.

Both sides are measured in turns in one run, with the same number of threads, and only their ratio is judged. Before any
timing the two results are compared: a fast wrong answer is no answer.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
import export_minilm  # noqa: E402

TARGET = 1.0
TOLERANCE = 1e-5


def make_inputs(model, batch, tokens):
    generator = torch.Generator().manual_seed(1)
    vocabulary = model.embeddings.word_embeddings.num_embeddings
    ids = torch.randint(vocabulary // 3, vocabulary, (batch, tokens), generator=generator)
    return {"ids": ids, "mask": torch.ones(batch, tokens, dtype=torch.int64)}


def time_python(model, inputs, repeat):
    times = []
    for _ in range(5):
        model(**inputs)
    for _ in range(repeat):
        start = time.perf_counter()
        model(**inputs)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def run_halftone(args, inputs_file, *options):
    command = [args.halftone, "run", args.model, "--inputs", inputs_file, "--backend", "eager", "--quiet",
               "--threads", str(args.threads), *options]
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def check_answer(args, model, inputs, folder):
    outputs_file = folder / "outputs.safetensors"
    run_halftone(args, folder / "inputs.safetensors", "--outputs", outputs_file)
    difference = (load_file(outputs_file)["output_0"] - model(**inputs)).abs().max().item()
    if not difference <= TOLERANCE:
        sys.exit(f"eager_ratio: results differ by {difference:g}: nothing is timed")
    return difference


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--halftone", type=pathlib.Path, required=True, help="the halftone program")
    parser.add_argument("--model", type=pathlib.Path, required=True, help=".pt2 made by scripts/export_minilm.py")
    parser.add_argument("--weights", type=pathlib.Path, help="folder of the same weights (default: the model's package)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeat", type=int, default=60)
    return parser.parse_args()


def main():
    args = parse_arguments()
    weights = args.weights or export_minilm.package_dir()
    if weights is None:
        sys.exit("eager_ratio: the package with MiniLM's weights is not installed; give --weights DIR")
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)
    model = export_minilm.load_encoder(weights)
    inputs = make_inputs(model, 1, 16)
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        save_file(inputs, folder / "inputs.safetensors")
        difference = check_answer(args, model, inputs, folder)
        for _ in range(args.rounds):
            python = time_python(model, inputs, args.repeat)
            report = run_halftone(args, folder / "inputs.safetensors", "--repeat", str(args.repeat))
            rounds.append((python, json.loads(report.splitlines()[-1])["median_ms"]))
    ratio = statistics.median(ours / theirs for theirs, ours in rounds)
    theirs, ours = (statistics.median(column) for column in zip(*rounds))
    print(f"MiniLM encoder at (1,16), {args.threads} threads, {args.rounds} rounds of {args.repeat}, "
          f"largest difference {difference:.1e}")
    print(f"  PyTorch eager from Python: {theirs:.3f} ms; halftone run --backend eager: {ours:.3f} ms")
    print(f"  ratio {ratio:.3f}   target at most {TARGET:.1f}    {'PASS' if ratio <= TARGET else 'MISS'}")
    print(json.dumps({"bench": "eager_ratio", "python_ms": theirs, "halftone_ms": ours, "ratio": ratio,
                      "threads": args.threads, "pass": ratio <= TARGET}))
    return 0 if ratio <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
