"""Measures peers on a network: one JSON line for each peer and case, {"peer", "case", "ms", "cos"}.

Ratios between lines of one run can be compared; times of different runs cannot, since the machine is not always equally fast.
"""
import argparse
import importlib.util
import json
import logging
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import network as networks

MIN_RUNS = 5


def median_ms(run, seconds, clock=time.perf_counter):
    """The median time of a call, of calls for so many seconds and at least MIN_RUNS, after two calls to warm up."""
    run()
    run()
    times, end = [], clock() + seconds
    while len(times) < MIN_RUNS or clock() < end:
        start = clock()
        run()
        times.append((clock() - start) * 1e3)
    return statistics.median(times)


def cosine(answer, reference):
    import torch
    answer = torch.as_tensor(answer).float().flatten(1)
    return torch.nn.functional.cosine_similarity(answer, reference.flatten(1)).mean().item()


def be_quiet():
    """Exporters warn about much that is of no use here, and a hub is never asked: weights come from packages."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)


def measure(peer, network, threads, seconds, emit=print):
    import torch
    torch.set_num_threads(threads)
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        references = {case: network.module(*network.inputs(case)) for case in network.cases}
        start = time.perf_counter()
        run = networks.PEERS[peer].make(network, folder, threads)
        emit(json.dumps({"peer": peer, "setup_s": round(time.perf_counter() - start, 1)}), flush=True)
        for case in network.cases:
            inputs = network.inputs(case)
            similarity = cosine(run(*inputs), references[case])
            ms = median_ms(lambda: run(*inputs), seconds)
            emit(json.dumps({"peer": peer, "case": list(case), "ms": round(ms, 3), "cos": round(similarity, 5)}), flush=True)


def missing_modules(peer):
    return [name for name in ("torch", *networks.PEERS[peer].modules) if importlib.util.find_spec(name) is None]


def main(script, description, make_network, default_peers):
    """Each peer in a process of its own: runtimes keep threads and compilers keep state."""
    name = pathlib.Path(script).stem
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=default_peers, metavar="NAME,…", help=f"of {', '.join(networks.PEERS)} (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=3, help="for each peer and case (default: %(default)s)")
    args = parser.parse_args()
    peers = args.peers.split(",")
    for peer in peers:
        if peer not in networks.PEERS:
            parser.error(f"unknown peer {peer!r}; known: {', '.join(networks.PEERS)}")
    be_quiet()
    failed = False
    for peer in peers:
        if missing := missing_modules(peer):
            print(f"{name}: {peer} is not measured: this Python has no {', '.join(missing)}", file=sys.stderr)
        elif len(peers) == 1:
            measure(peer, make_network(), args.threads, args.seconds)
        else:
            child = [sys.executable, script, "--peers", peer, "--threads", str(args.threads), "--seconds", str(args.seconds)]
            if subprocess.run(child, check=False).returncode != 0:
                print(f"{name}: {peer} failed", file=sys.stderr)
                failed = True
    return 1 if failed else 0
