#!/usr/bin/env python3
"""What a call through ``torch.compile(backend="halftone")`` costs more than one through ``backend="eager"``.

A model so small that its arithmetic costs next to nothing. The two take turns in blocks, because clocks go up and down and
neighbours come and go; the difference is taken block by block, its median is reported with a bootstrap interval.

    python bench/python/call_overhead.py [--blocks 200] [--calls 200] [--json]
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import halftone  # noqa: F401  (registers the backend)
import torch


def models() -> dict[str, tuple[torch.nn.Module, torch.Tensor]]:
    """Name → model and input."""
    nn = torch.nn
    deep = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(8, 8), nn.ReLU())))
    return {
        "one linear": (nn.Linear(8, 8), torch.randn(1, 8)),
        "mlp, 4 weights": (nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)), torch.randn(1, 8)),
        "mlp, 16 weights": (deep, torch.randn(1, 8)),
    }


def block_seconds(call: Callable[[Any], Any], value: Any, calls: int) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    for _ in range(calls):
        call(value)
    return (time.perf_counter() - start) / calls


def interval(values: list[float], trials: int = 1000) -> tuple[float, float]:
    """95 % interval of the median."""
    source = random.Random(0)
    medians = sorted(statistics.median(source.choices(values, k=len(values))) for _ in range(trials))
    return medians[int(0.025 * trials)], medians[int(0.975 * trials)]


def measure(model: torch.nn.Module, value: torch.Tensor, blocks: int, calls: int) -> dict[str, Any]:
    """Microseconds."""
    model.eval()
    with torch.inference_mode():
        contestants = {name: torch.compile(model, backend=name) for name in ("eager", "halftone")}
        results = [compiled(value) for compiled in contestants.values()]
        torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)  # a wrong answer has no speed
        times: dict[str, list[float]] = {name: [] for name in contestants}
        for block in range(blocks):
            order = list(contestants.items())
            for name, compiled in order if block % 2 else reversed(order):
                times[name].append(1e6 * block_seconds(compiled, value, calls))
    differences = [ours - theirs for ours, theirs in zip(times["halftone"], times["eager"], strict=True)]
    low, high = interval(differences)
    return {
        "eager_us": statistics.median(times["eager"]),
        "halftone_us": statistics.median(times["halftone"]),
        "difference_us": statistics.median(differences),
        "low_us": low,
        "high_us": high,
    }


def main() -> None:
    """Prints a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    results = {}
    for name, (model, value) in models().items():
        results[name] = measure(model, value, options.blocks, options.calls)
        if not options.json:
            row = results[name]
            print(
                f"{name:16} eager {row['eager_us']:7.2f} µs  halftone {row['halftone_us']:7.2f} µs  "
                f"difference {row['difference_us']:+6.2f} µs [{row['low_us']:+.2f}, {row['high_us']:+.2f}]"
            )
    if options.json:
        print(json.dumps({"threads": torch.get_num_threads(), "torch": torch.__version__, "models": results}, indent=2))


if __name__ == "__main__":
    main()
