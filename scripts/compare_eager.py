#!/usr/bin/env python3
"""Runs an exported encoder in PyTorch and in Halftone on the same inputs: are the results equal, and what does each take?

The PyTorch side is the module that torch.export gives back, called below its hooks that check inputs: straight-line
Python. The two take turns, so that a busy machine disturbs both; compare the ratio, not the times.
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

TOLERANCE = 1e-5
WARM_UP = 3


def parse_shape(text):
    try:
        batch, tokens = (int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not BATCH,TOKENS") from None
    return batch, tokens


def make_inputs(program, batch, tokens):
    """By name for Halftone's file; in the order of the model's positional arguments."""
    vocabulary = program.state_dict["embeddings.word_embeddings.weight"].size(0)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(vocabulary // 3, vocabulary, (batch, tokens), generator=generator)
    return {"ids": ids, "mask": torch.ones(batch, tokens, dtype=torch.int64)}


def time_eager(forward, inputs, repeat):
    times = []
    for i in range(WARM_UP + repeat):
        start = time.perf_counter()
        forward(*inputs.values())
        if i >= WARM_UP:
            times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


class Halftone:
    """Calls of the program on one file of inputs."""

    def __init__(self, args, inputs, folder):
        self.inputs, self.outputs = folder / "inputs.safetensors", folder / "outputs.safetensors"
        save_file(inputs, self.inputs)
        self.command = [args.halftone, "run", args.model, "--inputs", self.inputs, "--threads", str(args.threads), "--quiet"]

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


def compare(args, program, forward, shape):
    inputs = make_inputs(program, *shape)
    with tempfile.TemporaryDirectory() as folder:
        halftone = Halftone(args, inputs, pathlib.Path(folder))
        # The answer first: a fast wrong one is not worth timing.
        difference = (halftone.result() - forward(*inputs.values())).abs().max().item()
        if not difference <= TOLERANCE:
            sys.exit(f"compare_eager: at {shape} the results differ by {difference:g}, more than {TOLERANCE:g}")
        rounds = [(time_eager(forward, inputs, args.repeat), halftone.median_ms(args.repeat)) for _ in range(args.rounds)]
    eager, ours = (statistics.median(column) for column in zip(*rounds))
    ratio = statistics.median(b / a for a, b in rounds)
    return {"shape": shape, "eager_ms": eager, "halftone_ms": ours, "ratio": ratio, "difference": difference}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help=".pt2 made by scripts/export_minilm.py")
    parser.add_argument("--halftone", type=pathlib.Path, required=True, metavar="PROGRAM", help="the halftone program")
    parser.add_argument("--shape", type=parse_shape, action="append", metavar="BATCH,TOKENS",
                        help="may be given several times (default: 1,16 and 8,128)")
    parser.add_argument("--repeat", type=int, default=20, help="calls in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    program = torch.export.load(args.model)
    forward = program.module(check_guards=False).forward
    with torch.inference_mode():
        rows = [compare(args, program, forward, shape) for shape in args.shape or [(1, 16), (8, 128)]]
    if args.json:
        print(json.dumps({"model": str(args.model), "threads": args.threads, "cases": rows}))
        return
    print(f"{'batch, tokens':15}{'eager ms':>10}{'halftone ms':>13}{'ratio':>8}{'largest difference':>21}")
    for row in rows:
        shape = f"({row['shape'][0]}, {row['shape'][1]})"
        print(f"{shape:15}{row['eager_ms']:10.2f}{row['halftone_ms']:13.2f}{row['ratio']:8.2f}{row['difference']:21.1e}")


if __name__ == "__main__":
    main()
