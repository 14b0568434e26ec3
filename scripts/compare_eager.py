#!/usr/bin/env python3
"""Runs the encoder in PyTorch eager and in Halftone on the same inputs: are the results equal, and what does each take?

The PyTorch side is the nn.Module that was exported, without gradients. The two take turns, so that a busy machine
disturbs both; compare the ratio, not the times.
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

import export_minilm

TOLERANCE = 1e-5
WARM_UP = 3


def parse_shape(text):
    try:
        batch, tokens = (int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not BATCH,TOKENS") from None
    return batch, tokens


def make_inputs(model, batch, tokens):
    vocabulary = model.embeddings.word_embeddings.num_embeddings
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(vocabulary // 3, vocabulary, (batch, tokens), generator=generator)
    return {"ids": ids, "mask": torch.ones(batch, tokens, dtype=torch.int64)}


def time_eager(model, inputs, repeat):
    times = []
    for i in range(WARM_UP + repeat):
        start = time.perf_counter()
        model(**inputs)
        if i >= WARM_UP:
            times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


class Halftone:
    """Calls of the program on one file of inputs."""

    def __init__(self, args, inputs, folder):
        self.inputs, self.outputs = folder / "inputs.safetensors", folder / "outputs.safetensors"
        save_file(inputs, self.inputs)
        self.command = [args.halftone, "run", args.model, "--inputs", self.inputs, "--threads", str(args.threads),
                        "--backend", "eager", "--quiet"]

    def run(self, *options):
        done = subprocess.run([*self.command, *options], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"compare_eager: halftone run failed with exit code {done.returncode}")
        return done.stdout

    def result(self):
        self.run("--outputs", self.outputs)
        return load_file(self.outputs)["output_0"]

    def median_ms(self, repeat):
        return json.loads(self.run("--repeat", str(repeat), "--json").splitlines()[-1])["median_ms"]


def compare(args, model, shape):
    inputs = make_inputs(model, *shape)
    with tempfile.TemporaryDirectory() as folder:
        halftone = Halftone(args, inputs, pathlib.Path(folder))
        # The answer first: a fast wrong one is not worth timing.
        difference = (halftone.result() - model(**inputs)).abs().max().item()
        if not difference <= TOLERANCE:
            sys.exit(f"compare_eager: at {shape} the results differ by {difference:g}, more than {TOLERANCE:g}")
        rounds = [(time_eager(model, inputs, args.repeat), halftone.median_ms(args.repeat)) for _ in range(args.rounds)]
    eager, ours = (statistics.median(column) for column in zip(*rounds))
    ratio = statistics.median(b / a for a, b in rounds)
    return {"shape": shape, "eager_ms": eager, "halftone_ms": ours, "ratio": ratio, "difference": difference}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help=".pt2 made by scripts/export_minilm.py")
    parser.add_argument("--weights", type=pathlib.Path, help="folder of the model's weights (default: its package)")
    parser.add_argument("--halftone", type=pathlib.Path, required=True, metavar="PROGRAM", help="the halftone program")
    parser.add_argument("--shape", type=parse_shape, action="append", metavar="BATCH,TOKENS",
                        help="may be given several times (default: 1,16 and 8,128)")
    parser.add_argument("--repeat", type=int, default=20, help="calls in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--target", type=float, help="exit 1 where a ratio is above it")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    return parser.parse_args()


def print_table(rows, target):
    print(f"{'batch, tokens':15}{'eager ms':>10}{'halftone ms':>13}{'ratio':>8}{'largest difference':>21}")
    for row in rows:
        shape = f"({row['shape'][0]}, {row['shape'][1]})"
        verdict = "" if target is None else f"   target {target:g}  {'PASS' if row['ratio'] <= target else 'MISS'}"
        print(f"{shape:15}{row['eager_ms']:10.2f}{row['halftone_ms']:13.2f}{row['ratio']:8.2f}{row['difference']:21.1e}{verdict}")


def main():
    args = parse_arguments()
    weights = args.weights or export_minilm.package_dir()
    if weights is None:
        sys.exit("compare_eager: the package with MiniLM's weights is not installed; give --weights DIR")
    torch.set_num_threads(args.threads)
    model = export_minilm.load_encoder(weights)
    with torch.no_grad():
        rows = [compare(args, model, shape) for shape in args.shape or [(1, 16), (8, 128)]]
    if args.json:
        print(json.dumps({"model": str(args.model), "threads": args.threads, "cases": rows}))
    else:
        print_table(rows, args.target)
    return 1 if args.target is not None and any(row["ratio"] > args.target for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
