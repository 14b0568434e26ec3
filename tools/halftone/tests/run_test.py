"""Tests of halftone run: outputs beside eager, inputs of files, state, timing."""
import json
import os
import pty
import subprocess

import numpy
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from cli_support import FOLDER, GOLDEN, HALFTONE, CliTest, classifier, classifier_inputs, export, main, rewrite_ht

export("classifier", "block", "branch", "counter", "not_finite", "writer", "no_samples", "twice")


class Run(CliTest):
    def test_outputs_equal_eager(self):
        inputs = classifier_inputs(batch=7)
        save_file(inputs, FOLDER / "in.safetensors")
        self.ok("run", "classifier.pt2", "--inputs", "in.safetensors", "--outputs", "out.safetensors")
        with torch.no_grad():
            expected = classifier()(**inputs)
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
        self.fails(1, "run", "classifier.pt2", "--inputs", "shape.safetensors", says=["shape.safetensors: ", "scale"])
        save_file(classifier_inputs() | {"ids": torch.ones(2, 5)}, FOLDER / "dtype.safetensors")
        self.fails(1, "run", "classifier.pt2", "--inputs", "dtype.safetensors",
                   says=["dtype.safetensors: ", '"ids": expected dtype int64, found float32'])
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
                         (5, 1, "halftone", "counter.pt2"))
        self.assertTrue(0 < report["p10_ms"] <= report["median_ms"] <= report["p90_ms"] <= report["p99_ms"])
        self.assertAlmostEqual(report["calls_per_second"], 1e3 / report["mean_ms"])
        for words in ("backend: halftone", "5 repetitions of one call", "p99", "calls per second"):
            self.assertIn(words, done.stdout)

    def test_several_calls_are_timed_together_and_said_to_be(self):
        save_file({"x": torch.ones(3)}, FOLDER / "ones.safetensors")
        done = self.ok("run", "counter.pt2", "--inputs", "ones.safetensors", "--inputs", "ones.safetensors", "--duration", "0.2")
        self.assertIn("of all 2 calls together", done.stdout)
        report = json.loads(done.stdout.splitlines()[-1])
        self.assertGreater(report["repeat"], 10)
        self.assertGreater(report["repeat"] * report["mean_ms"], 20)
        self.assertAlmostEqual(report["calls_per_second"], 2e3 / report["mean_ms"])
        self.fails(2, "run", "counter.pt2", "--duration", "0", says=["--duration"])

    def test_what_is_not_finite_is_counted(self):
        done = self.ok("run", "not_finite.pt2")
        output, = json.loads(self.ok("run", "not_finite.pt2", "--json").stdout)["calls"][0]["outputs"]
        self.assertGreater(output["nan"], 100)
        self.assertEqual(output["infinite"], 0)
        self.assertLess(output["min"], output["max"])
        self.assertIn(f"output_0: {output['nan']} of 512 elements are NaN, 0 infinite", done.stdout)
        self.assertNotIn("nan ", done.stdout.splitlines()[2])

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


class Numpy(CliTest):
    """Files that numpy itself writes and reads."""

    def test_npz_in_and_out(self):
        inputs = {name: tensor.numpy() for name, tensor in classifier_inputs(batch=3).items()}
        numpy.savez(FOLDER / "in.npz", **inputs)
        save_file(classifier_inputs(batch=3), FOLDER / "same.safetensors")
        self.ok("run", "classifier.pt2", "--inputs", "in.npz", "--outputs", "out.npz")
        self.ok("run", "classifier.pt2", "--inputs", "same.safetensors", "--outputs", "same_out.safetensors")
        found, expected = numpy.load(FOLDER / "out.npz"), load_file(FOLDER / "same_out.safetensors")
        self.assertEqual(set(found), set(expected))
        for name, tensor in expected.items():
            self.assertEqual((found[name].dtype, found[name].shape), (tensor.numpy().dtype, tensor.shape))
            numpy.testing.assert_array_equal(found[name], tensor.numpy())

    def test_compressed_npz(self):
        inputs = {name: tensor.numpy() for name, tensor in classifier_inputs(batch=3).items()}
        numpy.savez(FOLDER / "stored.npz", **inputs)
        numpy.savez_compressed(FOLDER / "deflated.npz", **inputs)
        for name in ("stored", "deflated"):
            self.ok("run", "classifier.pt2", "--inputs", f"{name}.npz", "--outputs", f"{name}_out.npz")
        stored, deflated = numpy.load(FOLDER / "stored_out.npz"), numpy.load(FOLDER / "deflated_out.npz")
        for name in stored:
            numpy.testing.assert_array_equal(stored[name], deflated[name])
        data = bytearray((FOLDER / "deflated.npz").read_bytes())
        data[data.index(b"ids.npy") + 40] ^= 0x55
        (FOLDER / "damaged.npz").write_bytes(data)
        self.fails(1, "run", "classifier.pt2", "--inputs", "damaged.npz", says=["damaged.npz"])

    def test_npy_is_the_only_tensor_whatever_its_order(self):
        x = numpy.random.default_rng(0).standard_normal((3, 70, 64), dtype=numpy.float32)
        results = []
        for name, array in (("rows", x), ("columns", numpy.asfortranarray(x))):
            numpy.save(FOLDER / f"{name}.npy", array)
            self.ok("run", "block.pt2", "--inputs", f"{name}.npy", "--outputs", f"{name}_out.npy")
            results.append(numpy.load(FOLDER / f"{name}_out.npy"))
        self.assertEqual(results[0].shape, (3, 70, 64))
        numpy.testing.assert_array_equal(*results)
        self.fails(1, "run", "classifier.pt2", "--inputs", "rows.npy", says=["rows.npy", "2 tensors", ".npz", "ids: int64"])
        self.fails(1, "run", "classifier.pt2", "--outputs", "five.npy", says=["five.npy", "one array"])

    def test_what_is_not_read_is_named(self):
        numpy.save(FOLDER / "objects.npy", numpy.array([{}], dtype=object), allow_pickle=True)
        torch.save({"x": torch.ones(3)}, FOLDER / "saved.pt")
        for name, says in (("objects.npy", "Python objects"), ("saved.pt", "torch.save"),
                           ("counter.pt2", "a model")):
            self.fails(1, "run", "counter.pt2", "--inputs", name, says=[name, says])


class Shapes(CliTest):
    def outputs(self, *arguments):
        report = json.loads(self.ok("run", *arguments, "--json").stdout)
        return [call["outputs"] for call in report["calls"]]

    def test_made_up_inputs_of_these_shapes(self):
        call, = self.outputs("classifier.pt2", "--shapes", "ids:7x5,scale:1")
        self.assertEqual(call[0]["shape"], [7, 5, 16])
        one, two = self.outputs("classifier.pt2", "--shapes", "ids:1x5", "--shapes", "ids:2x5")
        self.assertEqual((one[0]["shape"], two[0]["shape"]), ([1, 5, 16], [2, 5, 16]))
        self.assertEqual(self.outputs("no_samples.pt2", "--shapes", "1x4")[0][0]["shape"], [1, 2])

    def test_the_seed_decides(self):
        first, again, other = (self.outputs("block.pt2", "--shapes", "3x70x64", "--seed", seed) for seed in ("1", "1", "2"))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_mistakes(self):
        for shapes, says in (("idz:7x5", 'did you mean "ids"?'), ("7x5", "names no input"), ("ids:7y5", "is no shape"),
                             ("ids:", "is no shape"), ("ids:-1x5", "is no shape"), ("ids:2x5,ids:3x5", "second shape"),
                             ("ids:999999999x999999999999", "too many elements")):
            self.fails(2, "run", "classifier.pt2", "--shapes", shapes, says=["--shapes", says])
        self.fails(1, "run", "classifier.pt2", "--shapes", "ids:33x5", says=["ids", "1 to 32"])
        self.fails(2, "run", "block.pt2", "--seed", "3", says=["--shapes"])
        self.fails(2, "run", "block.pt2", "--shapes", "3x70x64", "--inputs", "x.npy", says=["--shapes"])


class StoredBackend(CliTest):
    """The backend of a .ht file is a claim of its author."""

    def setUp(self):
        save_file({"x": torch.ones(2, 64)}, FOLDER / "x.safetensors")

    def test_a_copy_with_right_digests_runs(self):
        rewrite_ht(GOLDEN / "v2_backend_int8dq.ht", FOLDER / "copy.ht", {})
        self.ok("verify", "copy.ht")
        self.ok("run", "copy.ht", "--inputs", "x.safetensors")

    def test_code_may_not_come_from_a_file(self):
        """The file names a package of machine code and gives itself the permission to run it."""
        record = {"type": "AotInductorBackend", "config": {"allow_code": True, "package": str(FOLDER / "evil.pt2")},
                  "device": "cpu", "state": "ACTIVE", "weights": "converted"}
        rewrite_ht(GOLDEN / "v2_backend_int8dq.ht", FOLDER / "evil.ht", {"halftone.backend": json.dumps(record)})
        for more in ([], ["--backend", "stored"]):
            self.fails(1, "run", "evil.ht", "--inputs", "x.safetensors", *more, says=["evil.ht", "may not come from a file"])
        self.fails(1, "verify", "evil.ht", says=["may not come from a file"])


class HalftoneBackend(CliTest):
    """What run has for compiled models only."""

    def test_passes_are_the_halftone_backends(self):
        self.fails(2, "run", "classifier.pt2", "--backend", "eager", "--disable-pass", "clean_up", says=["--disable-pass", "--backend halftone"])
        self.fails(2, "run", "classifier.pt2", "--backend", "halftone", "--disable-pass", "clean_upp", says=["clean_up"])
        done = self.ok("run", "classifier.pt2", "--backend", "halftone", "--disable-pass", "clean_up", "--verbose")
        self.assertIn("fuse_linear", done.stderr)

    def test_what_only_the_halftone_backend_can_is_refused_elsewhere(self):
        for option in (["--profile"], ["--trace", "t.json"], ["--deterministic"]):
            self.fails(2, "run", "classifier.pt2", "--backend", "eager", *option, says=[option[0], "--backend halftone"])
            self.fails(2, "run", GOLDEN / "v2_backend_int8dq.ht", *option,
                       says=[option[0], "--backend halftone", "runs as QuantBackend"])

    def test_files_without_a_backend_are_compiled(self):
        self.ok("quantize", "block.pt2", "--scheme", "int8wo", "-o", "block.ht")
        for model in ("block.pt2", "block.ht"):
            done = self.ok("run", model, "--outputs", "default.safetensors", "--json")
            self.assertEqual((json.loads(done.stdout)["backend"], done.stderr), ("halftone", "halftone: wrote default.safetensors\n"))
            self.ok("run", model, "--backend", "halftone", "--outputs", "asked.safetensors")
            self.ok("run", model, "--backend", "eager", "--outputs", "eager.safetensors")
            default, asked, eager = (load_file(FOLDER / f"{name}.safetensors")["output_0"] for name in ("default", "asked", "eager"))
            torch.testing.assert_close(default, asked, rtol=0, atol=0)
            torch.testing.assert_close(default, eager, rtol=1e-5, atol=1e-5)
        self.ok("run", "block.pt2", "--profile")

    def test_what_cannot_be_compiled_says_why(self):
        done = self.ok("run", "branch.pt2", "--json")
        self.assertIn("the whole graph runs in the interpreter: builtin::cond", done.stderr)

    def test_profile_and_trace(self):
        trace = FOLDER / "trace.json"
        done = self.ok("run", "classifier.pt2", "--backend", "halftone", "--profile", "--trace", str(trace))
        self.assertIn("of limit", done.stdout)
        self.assertIn("fused_linear", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
        found = json.loads(self.ok("run", "classifier.pt2", "--backend", "halftone", "--profile", "--json").stdout)
        steps = found["profile"]["steps"]
        # A limit that is beaten is none.
        self.assertTrue(all(step["limit_ms"] <= 1.05 * step["ms"] for step in steps), steps)
        self.assertTrue(all(step["ms"] > 0 and step["bytes"] > 0 for step in steps))
        events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X" and event["tid"] == 2]
        self.assertEqual([event["name"] for event in events], [step["target"] for step in steps])
        starts = [event["ts"] for event in events]
        self.assertEqual(starts, sorted(starts))
        self.fails(1, "run", "classifier.pt2", "--backend", "halftone", "--trace", "/no/such/folder/t.json", says=["cannot be written"])

    def test_deterministic_says_what_may_differ(self):
        done = self.ok("run", "classifier.pt2", "--backend", "halftone", "--deterministic")
        self.assertRegex(done.stderr, "may differ between numbers of threads: aten::mul")
        self.assertNotIn("linear", done.stderr)
        done = self.ok("run", "block.pt2", "--backend", "halftone", "--deterministic")
        self.assertIn("the same bytes for every number of threads", done.stderr)
        self.assertNotIn("may differ", done.stderr)

    def test_what_is_alike_is_one_line(self):
        done = self.ok("run", "twice.pt2", "--deterministic", "--json")
        self.assertEqual(len(json.loads(done.stdout)["may_differ"]), 8)
        lines = [line for line in done.stderr.splitlines() if "may differ" in line]
        self.assertEqual(len(lines), 2, done.stderr)
        self.assertTrue(all(line.endswith("(and 3 more alike)") for line in lines), done.stderr)

    def test_bytes_do_not_depend_on_the_number_of_threads(self):
        for scheme in ("fp32", "int8wo", "int8dq", "int4wo", "fp8wo", "fp8dq", "bf16wo"):
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


if __name__ == "__main__":
    main()
