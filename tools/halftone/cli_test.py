"""Tests of the command line, as a user and as a program sees it: exit codes, streams, files, JSON.

usage: cli_test.py HALFTONE [TEST…]. The models are exported here, by the torch of this Python.
"""
import json
import os
import pathlib
import pty
import shutil
import subprocess
import sys
import tempfile
import unittest

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

HALFTONE = ""
FOLDER = pathlib.Path()
MAX_COLUMNS = 100


class Classifier(nn.Module):
    """Every kind of layer that can be quantized, long layer names, a nested result with numbers, a string and None."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.a_rather_long_name_of_a_block = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
        self.convolution = nn.Conv1d(16, 8, 3, padding=1)

    def forward(self, ids, scale):
        x = self.a_rather_long_name_of_a_block(self.embedding(ids)) * scale
        y = self.convolution(x.transpose(1, 2))
        return {"features": x, "pair": (y, None), "answer": 42, "half": 0.5, "yes": True, "kind": "conv"}


class Block(nn.Module):
    """Only what has native kernels."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.up = nn.Linear(64, 256)
        self.down = nn.Linear(256, 64)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Counter(nn.Module):
    """Keeps state: the sum of what it saw."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.total.add_(x)
        return self.total * 1.0


class Writer(nn.Module):
    """Writes to its input."""

    def forward(self, x, y):
        x.add_(y)
        return x.sum()


def classifier_inputs(batch=2):
    return {"ids": torch.arange(batch * 5).reshape(batch, 5) % 50, "scale": torch.tensor([1.5])}


def export_models():
    torch.manual_seed(0)
    model = Classifier().eval()
    shapes = {"ids": {0: torch.export.Dim("batch", min=1, max=32)}, "scale": None}
    with torch.no_grad():
        program = torch.export.export(model, tuple(classifier_inputs().values()), dynamic_shapes=shapes)
    torch.export.save(program, FOLDER / "classifier.pt2")
    torch.export.save(torch.export.export(Block().eval(), (torch.randn(3, 70, 64),)), FOLDER / "block.pt2")
    torch.export.save(torch.export.export(Counter(), (torch.ones(3),)), FOLDER / "counter.pt2")
    torch.export.save(torch.export.export(Writer(), (torch.ones(2), torch.ones(2))), FOLDER / "writer.pt2")
    plain = torch.export.export(nn.Linear(4, 2), (torch.ones(1, 4),))
    plain._example_inputs = None
    torch.export.save(plain, FOLDER / "no_samples.pt2")
    return model


def run(*arguments, **options):
    command = [HALFTONE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=FOLDER, timeout=120, **options)


class CliTest(unittest.TestCase):
    def ok(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def fails(self, code, *arguments, says=(), **options):
        """Exit code, nothing on stdout, one paragraph on stderr that says why and carries no backtrace."""
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("halftone: error: "), done.stderr)
        self.assertNotIn("\n\n", done.stderr)
        for never in ("frame #", "Exception raised from", "terminate called", "c10::"):
            self.assertNotIn(never, done.stderr)
        for word in says:
            self.assertIn(word, done.stderr)
        return done

    def assert_narrow(self, text):
        for line in text.splitlines():
            self.assertLessEqual(len(line), MAX_COLUMNS, line)


GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"


class Verify(CliTest):
    """On golden files; what verify finds is tested where the format is, in src/checkpoint."""

    def test_a_sound_file(self):
        done = self.ok("verify", GOLDEN / "v1_graph_int8wo.ht")
        self.assertIn("is sound", done.stdout)
        self.assertIn("1 quantized layers", done.stdout)
        report = json.loads(self.ok("verify", GOLDEN / "v1_graph_int8wo.ht", "--json").stdout)
        self.assertTrue(report["sound"])
        self.assertEqual(report["findings"], [])
        self.assertEqual(report["kind"], "graph")
        self.assertEqual(report["configs"]["fc"]["type"], "Int8WeightOnlyConfig")

    def test_a_damaged_file(self):
        data = bytearray((GOLDEN / "v1_graph_fp32.ht").read_bytes())
        data[-100] ^= 1
        (FOLDER / "damaged.ht").write_bytes(data)
        self.fails(1, "verify", "damaged.ht", says=["1 finding", "checksum"])
        done = run("verify", "damaged.ht", "--json")
        self.assertEqual(done.returncode, 1)
        self.assertFalse(json.loads(done.stdout)["sound"])
        self.fails(1, "run", "damaged.ht", says=["checksum"])

    def test_what_is_no_checkpoint(self):
        self.fails(1, "verify", "classifier.pt2", says=["classifier.pt2"])
        self.fails(1, "verify", "nowhere.ht", says=["nowhere.ht"])
        self.fails(2, "verify")

    def test_checkpoints_run_and_are_inspected(self):
        for name in ("v1_graph_fp32.ht", "v1_graph_int8wo.ht"):
            self.ok("run", GOLDEN / name)
            self.ok("inspect", GOLDEN / name)
        self.fails(1, "run", GOLDEN / "v1_module_fp32.ht", says=["without a graph"])


class CommandLine(CliTest):
    def test_version_names_both(self):
        self.assertRegex(self.ok("--version").stdout, r"^halftone \d+\.\d+\.\d+ \(torch 2\.13\.0\)\n$")

    def test_help_has_examples_and_is_a_result(self):
        for arguments in (["--help"], ["inspect", "--help"], ["kernels", "--help"], ["run", "--help"], ["verify", "--help"]):
            done = self.ok(*arguments)
            self.assertIn("Examples:\n  halftone ", done.stdout)
            self.assertEqual(done.stderr, "")
            self.assert_narrow(done.stdout)

    def test_help_of_run_tells_about_state(self):
        self.assertIn("reset state", self.ok("run", "--help").stdout)

    def test_wrong_command_lines(self):
        self.fails(2)
        self.fails(2, "dance", says=["dance", "--help"])
        self.fails(2, "run", says=["MODEL"])
        self.fails(2, "run", "classifier.pt2", "--no-such-option", says=["--no-such-option", "halftone run --help"])
        self.fails(2, "inspect", "classifier.pt2", "--graph", "--dot", says=["--graph", "--dot"])
        self.fails(2, "inspect", "classifier.pt2", "--inputs", "x.safetensors", says=["--time"])
        self.fails(2, "run", "classifier.pt2", "--quiet", "--verbose")

    def test_numbers_are_checked(self):
        for threads in ("0", "-1", "many", "1000000"):
            self.fails(2, "run", "classifier.pt2", "--threads", threads, says=["--threads"])
        for repeat in ("0", "-5", "x"):
            self.fails(2, "run", "classifier.pt2", "--repeat", repeat, says=["--repeat"])

    def test_passes_are_the_halftone_backends(self):
        self.fails(2, "run", "classifier.pt2", "--disable-pass", "clean_up", says=["--disable-pass", "--backend halftone"])
        self.fails(1, "run", "classifier.pt2", "--backend", "halftone", "--disable-pass", "clean_upp", says=["clean_up"])
        done = self.ok("run", "classifier.pt2", "--backend", "halftone", "--disable-pass", "clean_up", "--verbose")
        self.assertIn("fuse_linear", done.stderr)

    def test_what_only_the_halftone_backend_can_is_refused_elsewhere(self):
        for option in (["--profile"], ["--trace", "t.json"], ["--deterministic"]):
            self.fails(2, "run", "classifier.pt2", *option, says=[option[0], "--backend halftone"])

    def test_profile_and_trace(self):
        trace = FOLDER / "trace.json"
        done = self.ok("run", "classifier.pt2", "--backend", "halftone", "--profile", "--trace", str(trace))
        self.assertIn("of limit", done.stdout)
        self.assertIn("fused_linear", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
        found = json.loads(self.ok("run", "classifier.pt2", "--backend", "halftone", "--profile", "--json").stdout)
        steps = found["profile"]["steps"]
        self.assertTrue(all(step["ms"] > 0 and step["bytes"] > 0 for step in steps))
        events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X" and event["tid"] == 2]
        self.assertEqual([event["name"] for event in events], [step["target"] for step in steps])
        starts = [event["ts"] for event in events]
        self.assertEqual(starts, sorted(starts))
        self.fails(1, "run", "classifier.pt2", "--backend", "halftone", "--trace", "/no/such/folder/t.json", says=["cannot be written"])

    def test_deterministic_says_what_may_differ(self):
        done = self.ok("run", "classifier.pt2", "--backend", "halftone", "--deterministic")
        self.assertRegex(done.stderr, "may differ between numbers of threads: aten::conv")
        self.assertNotIn("linear", done.stderr)
        done = self.ok("run", "block.pt2", "--backend", "halftone", "--deterministic")
        self.assertIn("the same bytes for every number of threads", done.stderr)
        self.assertNotIn("may differ", done.stderr)

    def test_bytes_do_not_depend_on_the_number_of_threads(self):
        for scheme in ("fp32", "int8wo", "int8dq", "int4wo", "fp8wo", "fp8dq"):
            model = "block.pt2"
            if scheme != "fp32":
                model = f"block_{scheme}.ht"
                self.ok("quantize", "block.pt2", "-o", model, "--scheme", scheme)
            results = []
            for threads in ("1", "2", "3"):
                out = f"block_{scheme}_{threads}.safetensors"
                self.ok("run", model, "--backend", "halftone", "--threads", threads, "--outputs", out)
                results.append((FOLDER / out).read_bytes())
            self.assertEqual(results[0], results[1], scheme)
            self.assertEqual(results[0], results[2], scheme)

    def test_inspect_shows_what_the_backend_makes(self):
        done = self.ok("inspect", "classifier.pt2", "--backend", "halftone")
        for part in ("fuse_linear", "halftone::fused_linear", "Left to ATen, and why", "aten::conv1d", "Compiled in"):
            self.assertIn(part, done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
        found = json.loads(self.ok("inspect", "classifier.pt2", "--backend", "halftone", "--json").stdout)
        self.assertTrue(any("conv" in line for line in found["left_to_aten"]))
        self.assertTrue(found["steps"])
        self.assertIn("Nothing is left to ATen", self.ok("inspect", "block.pt2", "--backend", "halftone").stdout)
        self.fails(2, "inspect", "classifier.pt2", "--backend", "gpu", says=["halftone"])
        self.fails(2, "inspect", "classifier.pt2", "--inputs", "x.safetensors", says=["--time"])

    def test_unknown_backend_lists_the_known(self):
        self.fails(2, "run", "classifier.pt2", "--backend", "gpu", says=["'gpu'", "known: eager"])

    def test_outputs_must_match_inputs(self):
        self.fails(2, "run", "counter.pt2", "--outputs", "a", "--outputs", "b", says=["--outputs"])
        self.fails(2, "run", "counter.pt2", "--inputs", "x", "--inputs", "x", "--outputs", "a", says=["--outputs"])
        self.fails(2, "run", "counter.pt2", "--inputs", "x", "--inputs", "x", "--outputs", "a", "--outputs", "a",
                   says=["same file"])


class Files(CliTest):
    def test_missing_file(self):
        for command in ("run", "inspect"):
            self.fails(1, command, "nowhere.pt2", says=["nowhere.pt2", "no such file"])

    def test_folder(self):
        self.fails(1, "run", ".", says=["directory"])

    def test_corrupt_files(self):
        whole = (FOLDER / "classifier.pt2").read_bytes()
        for name, content in (("cut.pt2", whole[: len(whole) // 2]), ("text.pt2", b"not a model"), ("empty.pt2", b""),
                              ("flipped.pt2", whole.replace(b'"graph_module"', b'"gRaph_module"'))):
            (FOLDER / name).write_bytes(content)
            for command in ("run", "inspect"):
                self.fails(1, command, name, says=[name])

    def test_unknown_kinds_are_named(self):
        save_file({"x": torch.ones(1)}, FOLDER / "weights.safetensors")
        self.fails(1, "inspect", "weights.safetensors", says=["weights without a graph", ".pt2"])
        (FOLDER / "model.ht").write_bytes(b"HALFTONE")
        self.fails(1, "run", "model.ht", says=[".ht"])
        (FOLDER / "notes.txt").write_text("hello")
        self.fails(1, "run", "notes.txt", says=["unknown kind"])

    def test_kind_is_told_by_content(self):
        shutil.copy(FOLDER / "counter.pt2", FOLDER / "counter_without_extension")
        self.ok("run", "counter_without_extension")

    def test_operator_library_must_load(self):
        self.fails(1, "run", "counter.pt2", "--load-library", "nowhere.so", says=["nowhere.so"])

    def test_unwritable_outputs(self):
        self.fails(1, "run", "counter.pt2", "--outputs", "no/such/folder/out.safetensors", says=["no/such/folder"])

    def test_full_disk_on_stdout(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([HALFTONE, "inspect", FOLDER / "counter.pt2", "--graph"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)


class Run(CliTest):
    def test_outputs_equal_eager(self):
        inputs = classifier_inputs(batch=7)
        save_file(inputs, FOLDER / "in.safetensors")
        self.ok("run", "classifier.pt2", "--inputs", "in.safetensors", "--outputs", "out.safetensors")
        with torch.no_grad():
            expected = MODEL(**inputs)
        found = load_file(FOLDER / "out.safetensors")
        with safe_open(FOLDER / "out.safetensors", "pt") as file:
            structure = json.loads(file.metadata()["structure"])
        leaves = {leaf["path"]: leaf for leaf in structure}
        self.assertEqual([leaf["name"] for leaf in structure], [f"output_{i}" for i in range(7)])
        self.assertEqual(set(leaves), {"['features']", "['pair'][0]", "['pair'][1]", "['answer']", "['half']", "['yes']",
                                       "['kind']"})
        tensor = lambda path: found[leaves[path]["name"]]  # noqa: E731
        torch.testing.assert_close(tensor("['features']"), expected["features"], rtol=0, atol=1e-6)
        torch.testing.assert_close(tensor("['pair'][0]"), expected["pair"][0], rtol=0, atol=1e-6)
        for path, kind, dtype, value in (("['answer']", "int", torch.int64, 42), ("['half']", "float", torch.float64, 0.5),
                                         ("['yes']", "bool", torch.bool, True)):
            self.assertEqual(leaves[path]["kind"], kind)
            self.assertEqual((tensor(path).dtype, tensor(path).shape, tensor(path).item()), (dtype, (), value))
        self.assertEqual((leaves["['kind']"]["kind"], leaves["['kind']"]["value"]), ("string", "conv"))
        self.assertEqual(leaves["['pair'][1]"]["kind"], "none")
        self.assertEqual(len(found), 5)

    def test_sample_inputs_are_the_default(self):
        done = self.ok("run", "classifier.pt2")
        self.assert_narrow(done.stdout)
        self.assertIn("[2, 5, 16]", done.stdout)
        self.assertIn("['features']", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_no_sample_inputs_says_what_to_give(self):
        self.fails(1, "run", "no_samples.pt2", says=["sample inputs", "--inputs", "input: float32 [1, 4]"])

    def test_wrong_names_list_the_expected(self):
        save_file({"ids": torch.ones(2, 5, dtype=torch.int64), "skale": torch.ones(1)}, FOLDER / "wrong.safetensors")
        self.fails(1, "run", "classifier.pt2", "--inputs", "wrong.safetensors",
                   says=["missing 'scale'", "unexpected 'skale'", "ids: int64 [", "scale: float32 [1]"])

    def test_wrong_shape_and_dtype_name_the_input(self):
        save_file(classifier_inputs() | {"scale": torch.ones(2)}, FOLDER / "shape.safetensors")
        self.fails(1, "run", "classifier.pt2", "--inputs", "shape.safetensors", says=["scale"])
        save_file(classifier_inputs() | {"ids": torch.ones(2, 5)}, FOLDER / "dtype.safetensors")
        self.fails(1, "run", "classifier.pt2", "--inputs", "dtype.safetensors", says=["ids"])
        save_file(classifier_inputs(batch=33), FOLDER / "range.safetensors")
        self.fails(1, "run", "classifier.pt2", "--inputs", "range.safetensors", says=["ids", "32"])

    def test_failing_operator_gives_a_short_message(self):
        save_file(classifier_inputs() | {"ids": torch.full((2, 5), 50)}, FOLDER / "index.safetensors")
        self.fails(1, "run", "classifier.pt2", "--inputs", "index.safetensors")

    def test_state_carries_over_between_inputs(self):
        for i in (1, 2):
            save_file({"x": torch.full((3,), float(i))}, FOLDER / f"x{i}.safetensors")
        self.ok("run", "counter.pt2", "--inputs", "x1.safetensors", "--inputs", "x2.safetensors",
                "--outputs", "s1.safetensors", "--outputs", "s2.safetensors", "--repeat", "3")
        self.assertEqual(load_file(FOLDER / "s1.safetensors")["output_0"].tolist(), [1, 1, 1])
        self.assertEqual(load_file(FOLDER / "s2.safetensors")["output_0"].tolist(), [3, 3, 3])

    def test_mutated_inputs_are_written(self):
        save_file({"x": torch.tensor([1.0, 2.0]), "y": torch.tensor([10.0, 20.0])}, FOLDER / "xy.safetensors")
        before = (FOLDER / "xy.safetensors").read_bytes()
        self.ok("run", "writer.pt2", "--inputs", "xy.safetensors", "--outputs", "w.safetensors", "--repeat", "2")
        found = load_file(FOLDER / "w.safetensors")
        self.assertEqual(found["mutated_input_x"].tolist(), [11, 22])
        self.assertEqual(found["output_0"].item(), 33)
        self.assertEqual((FOLDER / "xy.safetensors").read_bytes(), before)

    def test_repeat_ends_with_json(self):
        done = self.ok("run", "counter.pt2", "--repeat", "5", "--threads", "1")
        lines = done.stdout.splitlines()
        self.assertGreater(len(lines), 1)
        self.assertIn("reset state", done.stdout)
        report = json.loads(lines[-1])
        self.assertEqual((report["repeat"], report["threads"], report["backend"], report["model"]),
                         (5, 1, "eager", "counter.pt2"))
        self.assertTrue(0 < report["p10_ms"] <= report["median_ms"] <= report["p90_ms"])

    def test_json_alone(self):
        for options in ([], ["--repeat", "2"]):
            done = self.ok("run", "classifier.pt2", "--json", *options)
            self.assertEqual(done.stdout.count("\n"), 1)
            report = json.loads(done.stdout)
            self.assertEqual("median_ms" in report, bool(options))
            outputs = {entry["path"]: entry for entry in report["calls"][0]["outputs"]}
            self.assertEqual(outputs["['features']"]["shape"], [2, 5, 16])
            self.assertEqual(outputs["['features']"]["dtype"], "float32")
            self.assertEqual(outputs["['answer']"]["value"], 42)

    def test_without_mapping(self):
        mapped, read = (self.ok("run", "classifier.pt2", "--json", *more).stdout for more in ([], ["--no-mmap"]))
        self.assertEqual(mapped, read)

    def test_quiet_silences_messages(self):
        save_file({"x": torch.ones(3)}, FOLDER / "x.safetensors")
        loud = self.ok("run", "counter.pt2", "--outputs", "quiet.safetensors")
        self.assertIn("wrote quiet.safetensors", loud.stderr)
        self.assertEqual(loud.stdout, "")
        self.assertEqual(self.ok("run", "counter.pt2", "--outputs", "quiet.safetensors", "--quiet").stderr, "")

    def test_progress_only_on_a_terminal(self):
        # Bars are for work of more than half a second, on whatever machine this is.
        # The shortest of several: a loaded machine would make it look long, and the run below too short.
        shortest = min(json.loads(self.ok("run", "classifier.pt2", "--repeat", "50", "--json").stdout)["p10_ms"]
                       for _ in range(3))
        repeat = min(max(int(3000 / shortest), 100), 1_000_000)
        command = [HALFTONE, "run", str(FOLDER / "classifier.pt2"), "--repeat", str(repeat)]
        self.assertNotIn("[#", subprocess.run(command, capture_output=True, text=True, timeout=120).stderr)
        main_end, terminal = pty.openpty()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=terminal) as process:
            os.close(terminal)
            seen = b""
            try:
                while chunk := os.read(main_end, 4096):
                    seen += chunk
            except OSError:  # how Linux says that the other end was closed
                pass
        os.close(main_end)
        self.assertEqual(process.returncode, 0)
        self.assertIn(f"/{repeat}  timing".encode(), seen)


class Inspect(CliTest):
    def test_tables(self):
        done = self.ok("inspect", "classifier.pt2")
        self.assert_narrow(done.stdout)
        self.assertEqual(done.stderr, "")
        for word in ("embedding", "a_rather_long_name_of_a_block.0", "convolution", "ids", "int64", "1…32", "scale",
                     "['features']", "conv1d", "quantize"):
            self.assertIn(word, done.stdout)

    def test_json(self):
        report = json.loads(self.ok("inspect", "classifier.pt2", "--json").stdout)
        parameters = sum(parameter.numel() for parameter in MODEL.parameters())
        self.assertEqual(report["totals"]["parameters"], parameters)
        self.assertEqual(report["totals"]["parameter_bytes"], 4 * parameters)
        self.assertEqual([entry["name"] for entry in report["inputs"]], ["ids", "scale"])
        self.assertEqual(report["inputs"][0]["dtype"], "int64")
        (dimension,) = report["inputs"][0]["dynamic"]
        self.assertEqual((dimension["dim"], dimension["min"], dimension["max"]), (0, 1, 32))
        layers = {layer["name"]: layer for layer in report["layers"]}
        self.assertEqual(layers["convolution"]["parameters"], 16 * 8 * 3 + 8)
        self.assertEqual(report["quantizable"]["linears"]["count"], 2)
        self.assertEqual(report["quantizable"]["linears"]["bytes"], 4 * (2 * 16 * 32 + 16 + 32))
        self.assertEqual(report["quantizable"]["embeddings"]["count"], 1)
        self.assertEqual(report["quantizable"]["convolutions"]["count"], 1)

    def test_time_shares_add_up(self):
        done = self.ok("inspect", "classifier.pt2", "--time", "--json")
        shares = [layer["time_share"] for layer in json.loads(done.stdout)["layers"]]
        self.assertAlmostEqual(sum(shares), 1, places=5)
        self.assertTrue(all(share >= 0 for share in shares))
        table = self.ok("inspect", "classifier.pt2", "--time")
        self.assertIn("%", table.stdout)
        self.assert_narrow(table.stdout)

    def test_time_takes_inputs(self):
        save_file(classifier_inputs(batch=3), FOLDER / "three.safetensors")
        self.ok("inspect", "classifier.pt2", "--time", "--inputs", "three.safetensors")
        self.fails(1, "inspect", "no_samples.pt2", "--time", says=["--inputs"])
        self.ok("inspect", "no_samples.pt2")

    def test_graph_and_dot(self):
        self.assertIn("aten::", self.ok("inspect", "classifier.pt2", "--graph").stdout)
        self.assertTrue(self.ok("inspect", "classifier.pt2", "--dot").stdout.lstrip().startswith("digraph"))

    def test_state_is_shown(self):
        self.assertIn("total", self.ok("inspect", "counter.pt2").stdout)


class Kernels(CliTest):
    def test_lists_every_level_and_says_what_runs_here(self):
        done = self.ok("kernels")
        self.assert_narrow(done.stdout)
        self.assertIn("int8_linear", done.stdout)
        capped = {"env": {**os.environ, "HALFTONE_ISA": "scalar"}}
        report = json.loads(self.ok("kernels", "--json", **capped).stdout)
        self.assertEqual(report["instruction_set"], "scalar")
        for kernel in report["kernels"]:
            self.assertEqual(kernel["runs_here"], kernel["instruction_set"] == "scalar", kernel)

    def test_explains_a_choice(self):
        report = json.loads(self.ok("kernels", "--explain", "1", "64", "64", "int8-7bit", "--json").stdout)
        self.assertEqual(sum(kernel["chosen"] for kernel in report["kernels"]), 1)
        self.assertTrue(all(kernel["chosen"] or kernel["reason"] for kernel in report["kernels"]))
        self.fails(1, "kernels", "--explain", "1", "64", "64", "int3", says=["int3", "int8wo"])
        self.fails(1, "kernels", "--explain", "0", "64", "64", "fp32", says=["M", "positive"])
        self.fails(2, "kernels", "--explain", "1", "64", says=["--explain"])

    def test_an_unknown_level_is_an_error(self):
        self.fails(1, "kernels", says=["HALFTONE_ISA", "neon9"], env={**os.environ, "HALFTONE_ISA": "neon9"})


class Schemes(CliTest):
    def test_lists_names_and_kernels(self):
        done = self.ok("schemes")
        self.assert_narrow(done.stdout)
        for word in ("int8wo, int8weightonly", "int4wo", "fp8dq", "noquant"):
            self.assertIn(word, done.stdout)
        schemes = json.loads(self.ok("schemes", "--json").stdout)["schemes"]
        by_name = {scheme["names"][0]: scheme for scheme in schemes}
        self.assertEqual(by_name["int4wo"]["config"]["group_size"], 32)
        self.assertIn("int8", by_name["int8dq"]["kernel"])
        self.assertEqual(by_name["noquant"]["kernel"], "")


class Quantize(CliTest):
    BLOCK = "a_rather_long_name_of_a_block"

    def test_writes_a_checkpoint_that_runs(self):
        done = self.ok("quantize", "classifier.pt2", "--scheme", "int8wo", "-o", "int8.ht")
        self.assert_narrow(done.stdout)
        self.assertIn("2 layers quantized", done.stdout)
        self.assertIn("times smaller", done.stdout)
        self.assertIn("wrote int8.ht", done.stderr)
        self.ok("run", "int8.ht", "--outputs", "int8.safetensors")
        self.ok("run", "classifier.pt2", "--outputs", "fp32.safetensors")
        got, want = load_file(FOLDER / "int8.safetensors"), load_file(FOLDER / "fp32.safetensors")
        for name, tensor in want.items():
            if tensor.is_floating_point() and tensor.dim() > 0:
                similarity = torch.cosine_similarity(got[name].flatten(), tensor.flatten(), dim=0)
                self.assertGreater(float(similarity), 0.999, name)
        self.assertIn("halftone::int8_weight_only_linear", self.ok("inspect", "int8.ht", "--graph").stdout)

    def test_the_same_command_gives_the_same_bytes(self):
        for name in ("a.ht", "b.ht"):
            self.ok("quantize", "classifier.pt2", "--scheme", "int8dq", "--embeddings", "-o", name)
        self.assertEqual((FOLDER / "a.ht").read_bytes(), (FOLDER / "b.ht").read_bytes())

    def test_options_choose_layers_and_fields(self):
        report = json.loads(self.ok(
            "quantize", "classifier.pt2", "--scheme", "int8dq", "--weight-bits", "7", "--embeddings", "--exclude", r".*\.0",
            "--override", r".*\.2=int4wo", "--dry-run", "--json").stdout)
        layers = {layer["name"]: layer for layer in report["layers"]}
        self.assertEqual(layers["embedding"]["config"]["type"], "Int8WeightOnlyConfig")
        self.assertEqual(layers[self.BLOCK + ".0"]["outcome"], "kept")
        self.assertEqual(layers[self.BLOCK + ".2"]["config"]["type"], "Int4WeightOnlyConfig")
        self.assertEqual(layers["convolution"]["reason"], "a convolution of kernel 3")

    def test_a_dry_run_writes_nothing(self):
        done = self.ok("quantize", "classifier.pt2", "--scheme", "int8wo", "--dry-run", "-o", "never.ht")
        self.assertIn("2 layers quantized", done.stdout)
        self.assertFalse((FOLDER / "never.ht").exists())

    def test_nothing_is_silent(self):
        quantize = ("quantize", "classifier.pt2", "-o", "no.ht", "--scheme")
        self.fails(1, *quantize, "int8w", says=["int8w", "int8wo"])
        self.fails(1, *quantize, "int4wo", says=["group size 32 does not divide 16", self.BLOCK + ".0"])
        self.fails(1, *quantize, "int8wo", "--include", "nothing", says=["include pattern", "nothing", "embedding"])
        self.fails(1, *quantize, "int8wo", "--min-weights", "100000", says=["nothing to quantize", "fewer than"])
        self.fails(1, *quantize, "int8wo", "--group-size", "32", says=["--group-size", "Int8WeightOnlyConfig"])
        self.fails(1, *quantize, "int8wo", "--override", "x", says=["--override", "REGEX=SCHEME"])
        self.fails(1, "quantize", "classifier.pt2", "--scheme", "int8wo", says=["-o"])
        self.fails(2, "quantize", "classifier.pt2", says=["--scheme"])
        self.assertFalse((FOLDER / "no.ht").exists())

    def test_another_scheme_on_a_quantized_model_is_an_error(self):
        self.ok("quantize", "classifier.pt2", "--scheme", "int8wo", "-o", "once.ht")
        self.assertIn("2 layers quantized before", self.ok("quantize", "once.ht", "--scheme", "int8wo", "--dry-run").stdout)
        self.fails(1, "quantize", "once.ht", "--scheme", "int8dq", "-o", "twice.ht", says=["already", self.BLOCK + ".0"])


class Backends(CliTest):
    def test_lists_names_tags_and_what(self):
        done = self.ok("backends")
        self.assert_narrow(done.stdout)
        self.assertIn("halftone", done.stdout)
        self.assertNotIn("relu_", done.stdout)
        everything = self.ok("backends", "--all").stdout
        self.assert_narrow(everything)
        self.assertIn("relu_accuracy_error", everything)
        backends = {b["name"]: b for b in json.loads(self.ok("backends", "--all", "--json").stdout)["backends"]}
        self.assertEqual(backends["ts"]["tags"], ["legacy"])
        self.assertEqual(backends["relu_compile_error"]["tags"], ["debug"])
        self.assertEqual(list(backends), sorted(backends))
        self.assertTrue(all(b["what"] for b in backends.values()))


class Minify(CliTest):
    def test_finds_the_node_that_fails_and_checks_it_again(self):
        for kind, failure in (("compile", "compile error"), ("runtime", "run error"), ("accuracy", "wrong numbers")):
            backend = f"relu_{kind}_error"
            done = self.ok("minify", "classifier.pt2", "--backend", backend, "-o", backend)
            self.assert_narrow(done.stdout)
            self.assertIn(failure, done.stdout)
            self.assertIn("aten::relu(", done.stdout)
            self.assertEqual({path.name for path in (FOLDER / backend).iterdir()},
                             {"graph.txt", "inputs.safetensors", "README.txt"})
            graph = (FOLDER / backend / "graph.txt").read_text()
            self.assertEqual(graph.count("::"), 1, graph)
            self.assertEqual(len(load_file(FOLDER / backend / "inputs.safetensors")), 1)
            self.assertIn(f"--backend {backend}", (FOLDER / backend / "README.txt").read_text())
            self.fails(1, "minify", "--check", backend, "--backend", backend, says=[failure, backend])
            self.assertIn("does not fail", self.ok("minify", "--check", backend, "--backend", "eager").stdout)

    def test_reports_for_programs(self):
        save_file(classifier_inputs(3), FOLDER / "three.safetensors")
        report = json.loads(self.ok("minify", "classifier.pt2", "--backend", "relu_runtime_error", "--inputs",
                                    "three.safetensors", "-o", "three", "--json").stdout)
        self.assertEqual(report["nodes_after"], 1)
        self.assertGreater(report["nodes_before"], 5)
        self.assertTrue(report["complete"])
        self.assertEqual(report["failure"]["kind"], "run error")
        self.assertEqual(next(iter(load_file(FOLDER / "three/inputs.safetensors").values())).shape[0], 3)
        self.assertFalse(json.loads(self.ok("minify", "--check", "three", "--backend", "ts", "--json").stdout)["fails"])

    def test_a_limit_on_trials_is_no_secret(self):
        done = self.ok("minify", "classifier.pt2", "--backend", "relu_runtime_error", "-o", "few", "--max-trials", "1")
        self.assertIn("--max-trials", done.stderr)

    def test_refuses(self):
        self.fails(1, "minify", "classifier.pt2", "--backend", "eager", "-o", "never", says=["does not fail"])
        self.assertFalse((FOLDER / "never").exists())
        self.fails(1, "minify", "classifier.pt2", "--backend", "haltone", says=["haltone", "there are halftone,"])
        self.fails(1, "minify", "--check", "nowhere", "--backend", "eager", says=["nowhere"])
        self.fails(2, "minify", "--backend", "eager", says=["MODEL", "--check"])
        self.fails(2, "minify", "classifier.pt2", "--check", "few", "--backend", "eager", says=["--check"])
        self.fails(2, "minify", "classifier.pt2", says=["--backend"])


class Diagnose(CliTest):
    def test_sorts_layers_by_harm(self):
        done = self.ok("diagnose", "classifier.pt2", "--scheme", "int8wo", "--csv", "layers.csv")
        self.assert_narrow(done.stdout)
        self.assertIn("All of them quantized", done.stdout)
        self.assertEqual(len((FOLDER / "layers.csv").read_text().splitlines()), 3)
        report = json.loads(self.ok("diagnose", "classifier.pt2", "--scheme", "int8wo", "--json").stdout)
        shares = [layer["share"] for layer in report["layers"]]
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertAlmostEqual(sum(shares), 1.0)
        for layer in report["layers"]:
            for part in ("weight", "output", "result"):
                self.assertGreater(layer[part]["snr_db"], 25, layer)
                self.assertGreater(layer[part]["cosine"], 0.999)

    def test_refuses_as_quantize_does(self):
        self.fails(1, "diagnose", "classifier.pt2", "--scheme", "int8wo", "--include", "nope", says=["nope"])
        self.fails(1, "diagnose", "classifier.pt2", "--scheme", "int8wo", "--csv", "no/folder.csv", says=["no/folder.csv"])


if __name__ == "__main__":
    HALFTONE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    with tempfile.TemporaryDirectory() as temporary:
        FOLDER = pathlib.Path(temporary)
        MODEL = export_models()
        result = unittest.main(exit=False).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
