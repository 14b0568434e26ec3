#!/usr/bin/env python3
"""ResNet-50, ours and the peers of bench/peers/resnet.py, in turns: one JSON line for each way and batch.

    resnet_turns.py --halftone BUILD/halftone --model fp32=MODEL.pt2 --model int8static-7x7=MODEL.ht … [--peers NAME,…] [--rounds N]

A slow minute of the machine must hit all alike, so every way runs for a second, then the next one. Each is a process of its
own; peers stay, built once, and wait. "ms" is the median over rounds of each round's median, "ratio" the median over rounds of
that round's time divided by the fastest peer of the same kind. Our answers are not looked at here ("cos" is null): vision_bench has
checked them before, as scripts/bench_resnet runs it. Run by the peers' Python.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "bench/peers"))
import measuring  # noqa: E402
import network as networks  # noqa: E402
import resnet  # noqa: E402

BATCHES, REPEATS = (1, 8), {1: 30, 8: 6}
THREADS = 2


def serve(peer):
    """Answers each line with a batch by a line with the median time of its runs."""
    import torch
    measuring.be_quiet()
    torch.set_num_threads(THREADS)
    network = resnet.make_network()
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # progress bars of the runtimes are not answers
        reference = {batch: network.module(resnet.images(batch)) for batch in BATCHES}
        run = networks.PEERS[peer].make(network, folder, THREADS)
        for line in sys.stdin:
            batch, x, times = int(line), resnet.images(int(line)), []
            answer = run(x)
            for _ in range(REPEATS[batch]):
                start = time.perf_counter()
                run(x)
                times.append(time.perf_counter() - start)
            print(json.dumps([statistics.median(times) * 1e3, measuring.cosine(answer, reference[batch])]), file=out, flush=True)


class Peer:
    def __init__(self, name):
        self.child = subprocess.Popen([sys.executable, __file__, "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True)

    def measure(self, batch):
        print(batch, file=self.child.stdin, flush=True)
        return json.loads(self.child.stdout.readline())


class Ours:
    def __init__(self, halftone, model, inputs):
        self.command, self.inputs = [halftone, "run", model, "--backend", "halftone", "--json", "--inputs"], inputs

    def measure(self, batch):
        done = subprocess.run([*self.command, self.inputs[batch], "--repeat", str(REPEATS[batch])], check=True, capture_output=True, text=True)
        return [next(json.loads(line)["median_ms"] for line in done.stdout.splitlines() if "median_ms" in line), None]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--halftone")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--peers", default="ort,ort-int8,ov,ov-int8", metavar="NAME,…", help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=6)
    args = parser.parse_args()
    if args.serve:
        return serve(args.serve)
    peers = args.peers.split(",")
    from safetensors.torch import save_file
    with tempfile.TemporaryDirectory() as folder:
        inputs = {batch: f"{folder}/{batch}.safetensors" for batch in BATCHES}
        for batch, path in inputs.items():
            save_file({"pixels": resnet.images(batch)}, path)
        ways = {f"halftone-{m.split('=')[0]}": Ours(args.halftone, m.split("=")[1], inputs) for m in args.model}
        ways |= {name: Peer(name) for name in peers}
        times, cosines = {}, {}
        for way in ways.values():
            way.measure(1)  # built, and warm
        for _ in range(args.rounds):
            for batch in BATCHES:
                for name, way in ways.items():
                    ms, cosines[name, batch] = way.measure(batch)
                    times.setdefault((name, batch), []).append(ms)
        for (name, batch), mine in times.items():
            rivals = [times[peer, batch] for peer in peers if ("int8" in peer) == ("int8" in name)]
            ratio = statistics.median(ms / min(rival[i] for rival in rivals) for i, ms in enumerate(mine))
            print(json.dumps({"peer": name, "case": [batch], "ms": round(statistics.median(mine), 2), "best": round(min(mine), 2),
                              "ratio": round(ratio, 3), "cos": cosines[name, batch]}), flush=True)


if __name__ == "__main__":
    main()
