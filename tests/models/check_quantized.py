"""Quantizes every exported model of the zoo with `halftone quantize` and compares its answers with PyTorch's.

    python check_quantized.py HALFTONE DIRECTORY [--only NAME] [--scheme S]

DIRECTORY is what export_zoo.py wrote. A model passes where the checkpoint's answers on its sample inputs, or on those of its
first call, have a cosine of at least 0.99 to PyTorch's, or where quantize says that there is nothing to quantize. One line a
model, then `N passed, M failed`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch

from check_zoo import PROCESSES, TIMEOUT_SECONDS, Calls, read

LEAST_COSINE = 0.99


def cosine(got: dict, want: dict) -> float:
    """Of all floating-point numbers together; infinities (masks) must be equal and do not count."""
    names = [name for name, tensor in want.items() if tensor.is_floating_point()]
    if not names:
        return 1.0
    x = torch.cat([got[name].double().flatten() for name in names])
    y = torch.cat([want[name].double().flatten() for name in names])
    finite = y.isfinite()
    if not torch.equal(x[~finite].nan_to_num(), y[~finite].nan_to_num()):
        return 0.0
    x, y = x[finite], y[finite]
    norms = float(x.norm() * y.norm())
    return float(x @ y) / norms if norms > 0 else float(torch.equal(x, y))


@dataclass
class Checker:
    program: Path
    directory: Path
    scheme: str

    def __post_init__(self):
        self.halftone = Calls(self.program, os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}, timeout=TIMEOUT_SECONDS)

    def check(self, entry: dict) -> tuple[str, bool]:
        """What happened, and whether it is well."""
        with tempfile.TemporaryDirectory() as scratch:
            checkpoint, output = Path(scratch) / "model.ht", Path(scratch) / "output.safetensors"
            model = self.directory / entry["model"]
            made = self.halftone("quantize", model, "--scheme", self.scheme, "-o", checkpoint, "--quiet")
            if made.returncode != 0:
                return made.stderr.strip().split("\n")[0], made.returncode == 1 and "nothing to quantize" in made.stderr
            arguments, expected = [], entry["sample"]
            if not expected:
                arguments, expected = ["--inputs", self.directory / entry["calls"][0]["inputs"]], entry["calls"][0]["expected"]
            ran = self.halftone("run", checkpoint, *arguments, "--outputs", output)
            if ran.returncode != 0:
                return ran.stderr.strip(), False
            value = cosine(read(output)[0], read(self.directory / expected)[0])
            return f"cosine {value:.6f}", value >= LEAST_COSINE

    def check_safely(self, entry: dict) -> tuple[str, bool]:
        try:
            return self.check(entry)
        except Exception as error:  # fails this model, not the whole run
            return f"{type(error).__name__}: {error}", False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("halftone", type=Path)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", metavar="NAME")
    parser.add_argument("--scheme", default="int8wo")
    options = parser.parse_args()
    entries = json.loads((options.directory / "manifest.json").read_text())["models"]
    entries = [entry for entry in entries if options.only in (None, entry["name"])]
    if not entries:
        print(f"no model called {options.only} in {options.directory}", file=sys.stderr)
        return 2
    checker = Checker(options.halftone.resolve(), options.directory.resolve(), options.scheme)
    failed = 0
    with ThreadPoolExecutor(PROCESSES) as pool:
        for entry, (what, well) in zip(entries, pool.map(checker.check_safely, entries)):
            failed += not well
            print(f"{'ok    ' if well else 'FAILED'} {entry['name']}: {what}", flush=True)
    print(f"{len(entries) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
