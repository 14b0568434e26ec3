"""scripts/performance_page.py on a few made-up figures: every part is there, other CPUs' pages stay, the summary says what the pages say."""
import copy
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))
import kernel_targets  # noqa: E402
import performance_page  # noqa: E402
import performance_summary  # noqa: E402

PEAKS = {"threads": 2, "read_gbs": 30.0, "chain_gmac": 180.0, "exact8_gmac": 140.0, "fma_gmac": 90.0}
KERNEL = {"suite": "linear", "m": 1, "n": 64, "k": 32, "threads": 2, "contender": "int8", "kernel": "int8_linear_x", "ours": True,
          "median_ms": 0.5, "spread": 0.01, "of_peak": 0.4, "of_read": 0.9, "to_baseline": 1.25, "to_rival": 0.8,
          "slower_than_baseline": True}
LOAD = {"bench": "first result", "what": "fp32", "ms": 160.0, "load_ms": 60.0, "compile_ms": 20.0, "run_ms": 80.0, "private_mb": 50.0,
        "mapped_mb": 90.0, "arena_mb": 0.5, "limit_ms": 150, "limit_mb": 60, "pass": False}
MODEL = [{"peer": "halftone-eager-fp32", "case": [1, 16], "ms": 8.0, "cos": 1.0},
         {"peer": "halftone-fp32", "case": [1, 16], "ms": 4.0, "cos": 1.0},
         {"peer": "ort", "case": [1, 16], "ms": 5.0, "cos": 1.0}, {"peer": "ort", "setup_and_run_s": 3.0}]
TRAINING = {"model": "mlp", "way": "aot_eager", "ms": 0.15, "p10": 0.1, "time": 0.75, "peak_mb": 0.002, "memory": 1.0,
            "verdict": "PASS (time <= 1.05)"}


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


SUITE = {"format": "halftone-bench", "machine": {"cpu": "Some CPU", "isa": "avx2", "threads": 2, "date": "2026-01-02T03:04:05Z"}, "rows": [
    {"name": "mlp", "batch_size": 16, "mode": "inference", "scheme": "noquant", "backend": "halftone", "accuracy": "pass", "speedup": 2.0,
     "abs_latency": 4.0, "cosine": 1.0, "bytes": 4000000},
    {"name": "mlp", "batch_size": 16, "mode": "inference", "scheme": "autoquant", "backend": "halftone", "accuracy": "pass", "speedup": 8.0,
     "abs_latency": 1.0, "cosine": 0.9987, "bytes": 1000000},
    {"name": "a|b", "batch_size": 1, "mode": "inference", "scheme": "noquant", "backend": "halftone", "accuracy": "timeout", "error": "late"},
    {"name": "mlp", "batch_size": 16, "mode": "training", "scheme": "noquant", "backend": "halftone", "accuracy": "pass", "speedup": 1.25,
     "abs_latency": 9.0, "compression_ratio": 1.1}]}


class PerformancePage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.summary = self.folder / "page.md"
        self.measure("avx2", "Some CPU")

    def measure(self, isa, cpu):
        part = {"cpu": cpu, "cores": 2, "isa": isa, "peaks": [PEAKS], "results": [KERNEL]}
        (self.folder / "linear-2.json").write_text(json.dumps(part))

    def run_script(self, *arguments):
        sys.argv = ["performance_page.py", *map(str, arguments)]
        performance_page.main()

    def page(self, cpu="Some CPU", isa="avx2"):
        return performance_summary.page_of(self.summary, cpu, isa)

    def make(self, *options, cpu="Some CPU", isa="avx2"):
        """Runs the script and gives the page of a CPU; the summary must agree with the pages whatever was made."""
        self.run_script(*options, self.folder, self.summary)
        self.run_script("--check", self.summary)
        return self.page(cpu, isa).read_text(encoding="utf-8")

    def summary_text(self):
        return self.summary.read_text(encoding="utf-8")

    def pages(self):
        return sorted(path.name for path in performance_summary.folder_of(self.summary).iterdir())

    def test_all_parts(self):
        (self.folder / "encoder.jsonl").write_text(lines(MODEL))
        (self.folder / "vision.jsonl").write_text(lines(MODEL[:2]))
        (self.folder / "load.txt").write_text("fp32 (90 MB)\n" + lines([LOAD]))
        (self.folder / "training.jsonl").write_text(lines([TRAINING]))
        text = self.make()
        self.assertIn("| mlp | aot_eager | 0.150 | 0.75 | 0.002 | 1.00 | PASS |", text)
        self.assertIn("make performance", text)
        self.assertTrue(text.startswith("# Some CPU, 2 cores, avx2\n"), text[:100])
        self.assertRegex(text, r"Measured on \d{4}-\d\d-\d\d\.")
        self.assertIn("| 1, 16 | halftone-fp32 | 4.00 | 1.0000 | 0.50 | 0.80 |", text)
        self.assertIn("Peers: ort.", text)
        self.assertIn("Peers: not measured.", text)  # of the ViT
        self.assertIn("| fp32 | 160 | 60 | 20 | 80 | 50.0 | 90.0 | 0.5 | **no** |", text)
        self.assertIn("| 1 | int8 | 0.500 | 1% | 90% | **1.25** | 0.80 |", text)

    def test_what_was_not_measured_is_said(self):
        text = self.make()
        self.assertEqual(text.count("not measured.\n"), 6)  # encoder, ViT, ResNet, loading, training, the suite
        self.assertIn("## CPUs with AVX-512 VNNI (AMD Zen 4, Intel Ice Lake)\n\nnot measured.", self.summary_text())
        self.assertIn("Whole models: not measured.", self.summary_text())
        self.assertNotIn("CPUs with AVX2 only", self.summary_text())

    def test_the_summary_has_our_best_beside_the_fastest_peer(self):
        rows = [*MODEL, {"peer": "halftone-int8dq", "case": [1, 16], "ms": 2.0, "cos": 0.9979},
                {"peer": "halftone-int4wo", "case": [1, 16], "ms": 1.0, "cos": 0.95},  # too far from the answer
                {"peer": "ort-int8", "case": [1, 16], "ms": 2.5, "cos": 0.98},
                {"peer": "halftone-fp32", "case": [2, 16], "ms": 7.0, "cos": 1.0}]
        (self.folder / "encoder.jsonl").write_text(lines(rows))
        self.make()
        text = self.summary_text()
        model = "all-MiniLM-L6-v2 (batch, tokens)"
        self.assertIn(f"| {model} | 1, 16 | int8dq | 2.00 | 0.9979 | ort-int8 | 2.50 | 0.9800 | 0.80 | 0.80 |", text)
        self.assertIn(f"| {model} | 2, 16 | fp32 | 7.00 | 1.0000 | – | – | – | – | – |", text)
        self.assertIn("## Some CPU, 2 cores, avx2\n\nMeasured on", text)
        self.assertIn(f"](page/{self.page().name})", text)

    def test_the_summary_has_the_kernel_targets_of_the_page(self):
        page = self.make()
        targets = [line for line in page.splitlines() if line.startswith("| int8, M ≥ 32") or line.startswith("| target | wanted |")]
        self.assertEqual(len(targets), 3)
        for line in targets:
            self.assertIn(line, self.summary_text())

    def test_a_summary_that_is_out_of_date_is_refused(self):
        (self.folder / "encoder.jsonl").write_text(lines(MODEL))
        self.make()
        page = self.page()
        page.write_text(page.read_text(encoding="utf-8").replace("| 5.00 |", "| 5.01 |"), encoding="utf-8")
        with self.assertRaisesRegex(SystemExit, "--summary"):
            self.run_script("--check", self.summary)
        self.run_script("--summary", self.summary)
        self.run_script("--check", self.summary)
        self.assertIn("| ort | 5.01 |", self.summary_text())

    def test_targets_show_the_worst_case_and_what_misses(self):
        def row(contender, m, n, threads, **figures):
            return dict(KERNEL, contender=contender, m=m, n=n, k=n, threads=threads, **figures)
        rows = [row("int8 weight-only", 1, 4096, 1, of_read=0.81), row("int8 weight-only", 1, 4096, 2, of_read=0.7),
                row("int8 weight-only", 4, 4096, 2, of_read=0.1),
                row("int4 dynamic", 32, 384, 1, to_baseline=0.3), row("int4 dynamic", 128, 1024, 1, to_baseline=0.7),
                row("int4 dynamic", 8, 1024, 1, to_baseline=2.0)]
        header, lines = kernel_targets.cells(rows)
        self.assertEqual(header, ["target", "wanted", "worst, threads 1", "worst, threads 2"])
        table = {line[0]: line[1:] for line in lines}
        self.assertEqual(table["int8 weight-only, M = 1, 4096²: of the bandwidth"],
                         ["≥ 80%", "81% (1×4096×4096)", "**70% (1×4096×4096)**, 1 of 1 miss"])
        self.assertEqual(table["int4 with 8-bit activations, M ≥ 32: / at::linear"],
                         ["≤ 0.60", "**0.70 (128×1024×1024)**, 1 of 2 miss", "not measured"])
        self.assertEqual(table["attention: / ATen's"][1], "not measured")

    def test_the_suite(self):
        (self.folder / "suite.json").write_text(json.dumps(SUITE))
        text = self.make()
        self.assertIn("| model | batch | noquant | autoquant | eager ms | best ms | MB |", text)
        self.assertIn("| mlp | 16 | 2.00 | 8.00 (.9987) | 8.00 | 1.00 | 4.0 → 1.0 |", text)
        self.assertIn("| a\\|b | 1 | **timeout** | – | – | – | – |", text)
        self.assertIn("| geometric mean |  | 2.00 | 8.00 |  |  |  |", text)
        self.assertIn("| mlp | 16 | 1.25 | 1.10 | pass |", text)

    def test_plans_beside_single_schemes(self):
        (self.folder / "suite.json").write_text(json.dumps(SUITE))
        rows = [{"name": "plan", "ms": 9.0, "cosine": 0.9961}, {"name": "int8dq", "ms": 10.0, "cosine": 0.9982}]
        batch = {"batch": 4, "cold_seconds": 12.34, "cached_seconds": 0.05, "best": "int8dq", "to_best": 0.9, "to_fp32": 0.5, "cosine": 0.9961,
                 "rows": rows}
        (self.folder / "autoquant-minilm.json").write_text(json.dumps({"model": "minilm.pt2", "batches": [batch]}))
        self.assertIn("| minilm | 4 | 9.00 | int8dq | 0.900 | 0.500 | 0.9961 | 12.3 / 0.05 |", self.make())

    def test_the_suite_alone(self):
        (self.folder / "suite.json").write_text(json.dumps(SUITE))
        before = self.make()
        faster = copy.deepcopy(SUITE)
        faster["rows"][1]["speedup"] = 4.0
        (self.folder / "suite.json").write_text(json.dumps(faster))
        after = self.make("--suite")
        for old, new in (("8.00 (.9987) | 8.00", "4.00 (.9987) | 4.00"), ("mean |  | 2.00 | 8.00", "mean |  | 2.00 | 4.00")):
            self.assertIn(old, before)
            before = before.replace(old, new)
        self.assertEqual(before, after)
        self.page().unlink()  # a machine of which nothing else is known
        alone = self.make("--suite")
        self.assertTrue(alone.startswith("# Some CPU, 2 threads, avx2\n"), alone[:100])
        self.assertIn("| mlp | 16 |", alone)
        self.assertEqual(alone, self.make("--suite"))

    def test_resnet_alone(self):
        for name, value in (("this_isa", "avx2"), ("this_cpu", "Some CPU")):
            self.addCleanup(setattr, performance_page, name, getattr(performance_page, name))
            setattr(performance_page, name, lambda value=value: value)
        (self.folder / "resnet.jsonl").write_text(lines(
            [{"peer": "halftone-eager-fp32", "case": [1], "ms": 80.0, "cos": 1.0},
             {"peer": "halftone-int8static-7x7", "case": [1], "ms": 20.0, "cos": 0.999},
             {"peer": "ov", "case": 1, "ms": 50.0, "cos": 1.0}, {"peer": "ov-int8", "case": 1, "ms": 25.0, "cos": 0.999}]))
        alone = self.make("--resnet")
        self.assertIn("| 1 | halftone-int8static-7x7 | 20.00 | 0.9990 | 0.25 | 0.80 |", alone)
        self.assertEqual(alone, self.make("--resnet"))
        whole = self.make()
        self.assertIn("\n## Kernels", whole)
        self.assertEqual(whole, self.make("--resnet"))

    def test_other_machines_stay(self):
        some = self.make()
        self.measure("avx512vnni", "Other CPU")
        other = self.make(cpu="Other CPU", isa="avx512vnni")
        self.assertEqual(self.page().read_text(encoding="utf-8"), some)
        self.measure("avx2", "Third CPU (family 1, model 2)")
        self.make(cpu="Third CPU (family 1, model 2)")
        self.assertEqual(self.page().read_text(encoding="utf-8"), some)
        self.assertEqual(self.page("Other CPU", "avx512vnni").read_text(encoding="utf-8"), other)
        self.assertEqual(self.pages(), ["other-cpu-avx512vnni.md", "some-cpu-avx2.md", "third-cpu-family-1-model-2-avx2.md"])
        for heading in ("Some CPU, 2 cores, avx2", "Other CPU, 2 cores, avx512vnni", "Third CPU (family 1, model 2), 2 cores, avx2"):
            self.assertIn(f"\n## {heading}\n", self.summary_text())

    def test_the_same_cpu_is_replaced(self):
        (self.folder / "encoder.jsonl").write_text(lines(MODEL))
        self.assertIn("| 1, 16 | ort | 5.00 |", self.make())
        (self.folder / "encoder.jsonl").write_text(lines(MODEL).replace("5.0,", "6.0,"))
        text = self.make()
        self.assertNotIn("5.00", text)
        self.assertIn("| 1, 16 | ort | 6.00 |", text)
        self.assertEqual(self.pages(), ["some-cpu-avx2.md"])

    def test_this_cpu_has_the_name_of_the_benchmarks(self):
        self.assertRegex(performance_page.this_cpu(), r"^.+ \(family \d+, model \d+\)$")


if __name__ == "__main__":
    unittest.main()
