"""Exports every model of the zoo as .pt2 and writes what PyTorch answers to each of its calls.

    python export_zoo.py DIRECTORY [--only NAME]

For a model NAME the directory gets NAME.pt2 and, for its call number N, NAME.callN.inputs.safetensors and
NAME.callN.expected.safetensors; manifest.json lists all of them. Nothing is done when the directory already holds the
output of the same sources, torch and processor.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import importlib.metadata
import json
import multiprocessing
import sys
import time
import traceback
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROCESSES = 2


def digest() -> str:
    """Changes with whatever can change the output: sources, torch, and the processor, whose kernels round differently."""
    parts = [importlib.metadata.version(package) for package in ("torch", "safetensors")]
    parts.append(sys.version)
    processor = Path("/proc/cpuinfo")
    if processor.exists():
        lines = processor.read_text().splitlines()
        parts += sorted({line for line in lines if line.startswith(("model name", "flags"))})
    for source in sorted([*HERE.glob("*.py"), *HERE.glob("zoo/*.py")]):
        parts.append(f"{source.relative_to(HERE)}\n{source.read_text()}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Exporter:
    """Exports one case in one variant ("" is the plain one)."""

    def __init__(self, entry, variant: str, directory: Path):
        self.case = entry.build()
        self.variant = variant
        self.name = f"{entry.name}_{variant}" if variant else entry.name
        self.directory = directory
        self.tolerance = self.case.decomposed_tolerance if variant == "decomposed" else self.case.tolerance

    def file(self, suffix: str) -> Path:
        return self.directory / f"{self.name}.{suffix}"

    def run(self) -> dict:
        import torch

        case = self.case
        # Running a model may write its buffers, which the exported program shares: everything runs on copies.
        self.program = torch.export.export(
            copy.deepcopy(case.module), *copy.deepcopy((case.args, case.kwargs)), dynamic_shapes=case.dynamic_shapes,
            strict=case.strict or self.variant == "strict")
        if self.variant == "decomposed":
            self.program = self.program.run_decompositions()
        torch.export.save(self.program, self.file("pt2"))
        calls = self.write_calls()
        return {
            "name": self.name, "model": self.file("pt2").name, "tolerance": self.tolerance, "calls": calls,
            "sample": None if self.variant else self.write_sample(), "refused": self.write_refusals()}

    def write_sample(self) -> str:
        """The answer to the sample inputs as they are in the .pt2, strides and all."""
        from reference import copied, run, write_outputs

        path = self.file("sample.expected.safetensors")
        write_outputs(path, *run(copy.deepcopy(self.case.module), copied(self.case.all_calls()[0]), self.program))
        return path.name

    def write_calls(self) -> list[dict[str, str]]:
        """Eager PyTorch's answers, and those of the exported program where they may differ by a tolerance.

        The program's answers come from the very operators that Halftone runs, so they are matched bit for bit.
        """
        from reference import as_files_hold, copied, run, write_inputs, write_outputs

        eager, exported = copy.deepcopy(self.case.module), self.program.module()
        calls = []
        for number, call in enumerate(map(as_files_hold, self.case.all_calls())):
            files = {"inputs": f"call{number}.inputs.safetensors", "expected": f"call{number}.expected.safetensors"}
            write_inputs(self.file(files["inputs"]), self.program, call)
            want, structure = run(eager, copied(call), self.program)
            write_outputs(self.file(files["expected"]), want, structure)
            got, got_structure = run(exported, copied(call), self.program)
            self.check_export(number, (got, got_structure), (want, structure))
            if self.tolerance > 0:
                files["program"] = f"call{number}.program.safetensors"
                write_outputs(self.file(files["program"]), got, structure)
            calls.append({kind: self.file(suffix).name for kind, suffix in files.items()})
        return calls

    def check_export(self, number: int, got, want) -> None:
        """A case whose export PyTorch itself runs differently has a wrong tolerance, or met a bug of torch.export."""
        from compare import differences

        problems = differences(got[0], want[0], self.tolerance)
        if got[1] != want[1]:
            problems.append(f"structure {got[1]}, expected {want[1]}")
        if problems:
            raise AssertionError(f"call {number}: the export does not do what the model does: {'; '.join(problems)}")

    def write_refusals(self) -> list[dict]:
        from reference import write_inputs

        entries = []
        for number, refusal in enumerate(self.case.refused):
            path = self.file(f"refused{number}.inputs.safetensors")
            write_inputs(path, self.program, refusal)
            entries.append({"inputs": path.name, "says": list(refusal.says)})
        return entries


def export_one(job: tuple[str, str, str]) -> tuple[str, dict | None, float, str]:
    """In a worker: (name, manifest entry or None, seconds, what went wrong)."""
    import torch
    from zoo import ENTRIES

    torch.set_num_threads(1)
    # The fast path replaces whole encoder layers by one fused operator, in eager mode alone.
    torch.backends.mha.set_fastpath_enabled(False)
    warnings.simplefilter("ignore")
    name, variant, directory = job
    start = time.monotonic()
    full_name = f"{name}_{variant}" if variant else name
    try:
        entry = Exporter(ENTRIES[name], variant, Path(directory)).run()
        return full_name, entry, time.monotonic() - start, ""
    except Exception:  # reported with its traceback by main(), beside the other models' results
        return full_name, None, time.monotonic() - start, traceback.format_exc()


def export_all(directory: Path, only: str | None) -> tuple[list[dict], int]:
    # Imported before the workers fork, so that they share it.
    import torch.export  # noqa: F401
    import reference  # noqa: F401
    from zoo import ENTRIES

    # One variant after the other: the slow strict exports do not all end up in the last worker.
    jobs = [(name, variant, str(directory)) for variant in ("strict", "decomposed", "") for name, entry in ENTRIES.items()
            if (not only or only == name) and (not variant or variant in entry.variants)]
    entries, failures = [], 0
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        for name, entry, seconds, problem in pool.imap_unordered(export_one, jobs):
            print(f"{'exported' if entry else 'FAILED  '} {name} ({seconds:.1f} s)", flush=True)
            if entry:
                entries.append(entry)
            else:
                failures += 1
                print(problem, flush=True)
    return sorted(entries, key=lambda entry: entry["name"]), failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", metavar="NAME", help="export one model with its variants, whatever is there already")
    options = parser.parse_args()
    manifest, key = options.directory / "manifest.json", digest()
    if not options.only and manifest.exists() and json.loads(manifest.read_text())["key"] == key:
        print(f"{options.directory} is up to date")
        return 0
    options.directory.mkdir(parents=True, exist_ok=True)
    manifest.unlink(missing_ok=True)
    start = time.monotonic()
    entries, failures = export_all(options.directory, options.only)
    print(f"{len(entries)} exported, {failures} failed, {time.monotonic() - start:.0f} s")
    if failures == 0:
        # A partial manifest carries no key: the next full run starts over.
        content = {"key": None if options.only else key, "models": entries}
        manifest.write_text(json.dumps(content, indent=1))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
