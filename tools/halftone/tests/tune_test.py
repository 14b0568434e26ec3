"""Tests of halftone tune: what it writes, what it says, its cache; and of halftone run with what was tuned."""
import json
import os

import torch
from safetensors.torch import load_file, save_file

from cli_support import FOLDER, CliTest, classifier_inputs, export, main, run

export("block", "classifier", "counter", "drawing", "no_samples")

# Few candidates and little time: what is tested here is the command, not the tuner.
SHORT = ("--time-limit", "4")
FEW = (*SHORT, "--backends", "eager,halftone,quant", "--schemes", "int8dq")


def without_home(**more):
    """An environment in which nothing of this user's is found."""
    return {"env": {key: value for key, value in os.environ.items() if key not in ("HOME", "XDG_CACHE_HOME")} | more}


class Tune(CliTest):
    def test_writes_its_choice_and_says_why(self):
        done = self.ok("tune", "block.pt2", *FEW, "--no-cache", "-o", "tuned.ht", "--report", "tuned.json")
        self.assert_narrow(done.stdout)
        report = json.loads((FOLDER / "tuned.json").read_text())
        candidates = {candidate["name"]: candidate for candidate in report["candidates"]}
        self.assertLessEqual({"eager", "fp32", "int8dq"}, set(candidates))
        self.assertEqual(candidates[report["chosen"]]["verdict"], "chosen")
        for name, candidate in candidates.items():
            self.assertIn(name, done.stdout)
            self.assertTrue(candidate["reason"] or candidate["verdict"] == "valid", candidate)
        last = done.stdout[done.stdout.index(f"{'Chosen' if report['won'] else 'Taken'}: {report['chosen']}"):]
        for words in ("eager", "least cosine", "written: tuned.ht", "halftone run tuned.ht"):
            self.assertIn(words, last)
        self.assertIn("wrote tuned.json", done.stderr)
        self.assertIn("is sound", self.ok("verify", "tuned.ht").stdout)

    def test_no_folder_of_this_machine_is_named_in_the_file(self):
        self.ok("tune", FOLDER / "block.pt2", *FEW, "--no-cache", "-o", FOLDER / "moved.ht")
        saved = (FOLDER / "moved.ht").read_bytes()
        self.assertIn(b"block.pt2", saved)
        self.assertNotIn(os.fsencode(FOLDER), saved)

    def test_run_takes_the_backend_that_was_saved(self):
        self.ok("tune", "block.pt2", *SHORT, "--strategy", "one", "--candidate", "int8wo", "--no-cache", "-o", "one.ht")
        self.ok("run", "block.pt2", "--outputs", "eager.safetensors")
        results = {}
        for backend in ("", "eager", "halftone", "stored"):
            chosen = ["--backend", backend] if backend else []
            self.ok("run", "one.ht", *chosen, "--outputs", f"one_{backend}.safetensors")
            results[backend] = load_file(FOLDER / f"one_{backend}.safetensors")["output_0"]
            self.assertIsNone(torch.testing.assert_close(results[backend], load_file(FOLDER / "eager.safetensors")["output_0"],
                                                         rtol=0.1, atol=0.1))
        torch.testing.assert_close(results[""], results["stored"], rtol=0, atol=0)
        report = json.loads(self.ok("run", "one.ht", "--json").stdout)
        self.assertRegex(report["backend"], r"^(Quant|Halftone|Eager)Backend\(")
        self.assertEqual(json.loads(self.ok("run", "one.ht", "--backend", "eager", "--json").stdout)["backend"], "eager")
        self.fails(1, "run", "block.pt2", "--backend", "stored", says=["block.pt2"])

    def test_json_is_the_report(self):
        report = json.loads(self.ok("tune", "block.pt2", *FEW, "--no-cache", "-o", "json.ht", "--json").stdout)
        self.assertEqual((report["output"], report["output_bytes"]), ("json.ht", (FOLDER / "json.ht").stat().st_size))
        self.assertEqual(report["strategy"], "throughput")
        timed = [candidate for candidate in report["candidates"] if candidate["times"]]
        self.assertGreaterEqual(len(timed), 2)
        self.assertTrue(all(time["median_ms"] > 0 for candidate in timed for time in candidate["times"]))

    def test_measurements_are_cached_where_asked_for_and_by_default(self):
        command = ("tune", "block.pt2", *FEW, "--json", "--report", "cached.json")
        first = json.loads(self.ok(*command, "--cache", "cache").stdout)
        again = json.loads(self.ok(*command, "--cache", "cache").stdout)
        self.assertEqual((first["from_cache"], again["from_cache"]), (False, True))
        self.assertEqual(first["candidates"], again["candidates"])
        self.assertTrue(json.loads(self.ok("tune", "block.pt2", *FEW, "--dry-run", "--cache", "cache", "--json").stdout)["cached"])
        for variable, folder in (("XDG_CACHE_HOME", "xdg"), ("HOME", "home/.cache")):
            home = {variable: str(FOLDER / folder.split("/")[0])}
            self.ok(*command, **without_home(**home))
            self.assertTrue(any((FOLDER / folder / "halftone/tune").iterdir()))
        before = sorted(FOLDER.rglob("*"))
        self.ok(*command, **without_home())
        self.assertEqual(sorted(FOLDER.rglob("*")), before)

    def test_a_dry_run_tries_nothing(self):
        done = self.ok("tune", "classifier.pt2", "--dry-run", "-o", "never.ht", "--report", "never.json", "--no-cache")
        self.assert_narrow(done.stdout)
        for word in ("eager", "fp32", "int8wo", "throughput"):
            self.assertIn(word, done.stdout)
        self.assertFalse((FOLDER / "never.ht").exists() or (FOLDER / "never.json").exists())
        plan = json.loads(self.ok("tune", "classifier.pt2", "--dry-run", "--no-cache", "--schemes", "int4wo", "--json").stdout)
        names = [candidate["name"] for candidate in plan["candidates"]]
        self.assertIn("int4wo", names)
        self.assertNotIn("int8wo", names)

    def test_several_shapes(self):
        for batch in (1, 8):
            save_file(classifier_inputs(batch), FOLDER / f"batch{batch}.safetensors")
        report = json.loads(self.ok("tune", "classifier.pt2", *FEW, "--no-cache", "--inputs", "batch1.safetensors", "--inputs",
                                    "batch8.safetensors", "-o", "shapes.ht", "--json").stdout)
        self.assertEqual(len(report["shapes"]), 2)
        self.ok("run", "shapes.ht", "--inputs", "batch8.safetensors")
        # Calls that a user brought do not go into the file.
        self.fails(1, "run", "shapes.ht", says=["--inputs"])

    def test_what_is_not_good_enough_is_dropped_with_a_reason(self):
        report = json.loads(self.ok("tune", "block.pt2", *FEW, "--no-cache", "--min-cosine", "1", "--report", "strict.json",
                                    "--json").stdout)
        int8dq = next(candidate for candidate in report["candidates"] if candidate["name"] == "int8dq")
        self.assertEqual(int8dq["verdict"], "dropped")
        self.assertIn("cosine", int8dq["reason"])
        self.assertIn(report["chosen"], ("eager", "fp32"))

    def test_models_with_state_and_without_weights(self):
        report = json.loads(self.ok("tune", "counter.pt2", *FEW, "--no-cache", "-o", "counter.ht", "--json").stdout)
        self.assertIn("nothing to quantize", json.dumps(report["candidates"]))
        self.ok("run", "counter.ht")

    def test_isolated_candidates(self):
        report = json.loads(self.ok("tune", "block.pt2", *FEW, "--no-cache", "--isolate", "--report", "isolated.json",
                                    "--json").stdout)
        self.assertNotIn("failed", {candidate["verdict"] for candidate in report["candidates"]}, report["candidates"])
        self.assertNotIn("trial", self.ok("--help").stdout)
        self.assertIn("error", run("trial", "nowhere.ht", "EagerBackend", "{}", "1").stdout)

    def test_by_submodule(self):
        done = self.ok("tune", "block.pt2", *SHORT, "--schemes", "int8dq", "--by-submodule", "--no-cache", "-o", "parts.ht")
        self.assert_narrow(done.stdout)
        self.assertRegex(done.stdout, "Chosen: |Taken: ")
        self.assertIn("is sound", self.ok("verify", "parts.ht").stdout)


    def test_without_output_it_prints_the_table_and_writes_nothing(self):
        before = sorted(FOLDER.rglob("*"))
        done = self.ok("tune", "block.pt2", *FEW, "--no-cache")
        self.assertRegex(done.stdout, "Chosen: |Taken: ")
        self.assertNotIn("written", done.stdout)
        self.assertEqual(sorted(FOLDER.rglob("*")), before)

    def test_the_columns_of_a_row_are_one_number(self):
        report = json.loads(self.ok("tune", "block.pt2", *FEW, "--no-cache", "--json").stdout)
        timed = {row["name"]: row for row in report["candidates"] if row["times"]}
        eager, fp32 = (timed[name]["times"][0] for name in ("eager", "fp32"))
        for name, row in timed.items():
            time = row["times"][0]
            self.assertAlmostEqual(time["median_ms"], eager["median_ms"] * time["to_eager"], msg=name)
            self.assertAlmostEqual(row["latency_ms"], time["median_ms"], msg=name)
            self.assertAlmostEqual(time["to_fp32"], time["to_eager"] / fp32["to_eager"], msg=name)
            self.assertLessEqual(time["low_ms"], time["median_ms"])
            self.assertGreaterEqual(time["high_ms"], time["median_ms"])
            self.assertGreaterEqual(time["runs"], 6)
        valid = [row for row in timed.values() if row["verdict"] in ("valid", "chosen")]
        best = max(valid, key=lambda row: row["throughput"])
        self.assertEqual(timed[report["chosen"]]["throughput"], best["throughput"])

    def test_a_busy_machine_is_refused_and_nothing_is_kept(self):
        busy = {"env": {**os.environ, "HALFTONE_BUSY": "always"}}
        self.fails(1, "tune", "block.pt2", *FEW, "--cache", "busy", "-o", "busy.ht", "--report", "busy.json",
                   says=["too busy to say", "rounds disturbed", "stop other programs"], **busy)
        self.assertFalse((FOLDER / "busy.ht").exists() or (FOLDER / "busy.json").exists())
        self.assertFalse((FOLDER / "busy").exists() and any((FOLDER / "busy").iterdir()))
        self.fails(1, "autoquant", "block.pt2", "--time-limit", "4", "--cache", "busy", "-o", "busy.ht",
                   says=["too busy to say"], **busy)
        self.assertFalse((FOLDER / "busy.ht").exists())
        self.assertFalse((FOLDER / "busy").exists() and any((FOLDER / "busy").iterdir()))

    def test_the_cache_can_be_seen_and_cleared(self):
        self.ok("tune", "block.pt2", *FEW, "--cache", "seen")
        shown = self.ok("tune", "--show-cache", "--cache", "seen")
        self.assert_narrow(shown.stdout)
        self.assertIn("block.pt2", shown.stdout)
        entry, = json.loads(self.ok("tune", "--show-cache", "--cache", "seen", "--json").stdout)["entries"]
        self.assertGreaterEqual(entry["rounds"], 6)
        self.assertEqual(entry["disturbed_rounds"], 0)
        # What was measured without looking at the machine is not taken where it is looked at.
        plan = json.loads(self.ok("tune", "block.pt2", *FEW, "--cache", "seen", "--dry-run", "--json",
                                  env={**os.environ, "HALFTONE_BUSY": ""}).stdout)
        self.assertFalse(plan["cached"])
        self.assertEqual(json.loads(self.ok("tune", "--clear-cache", "--cache", "seen", "--json").stdout)["removed"], 1)
        self.assertEqual(json.loads(self.ok("tune", "--show-cache", "--cache", "seen", "--json").stdout)["entries"], [])

    def test_a_budget_that_nothing_meets(self):
        done = run("tune", "block.pt2", *FEW, "--no-cache", "--strategy", "latency-budget", "--budget-ms", "1e-7", "-o", "late.ht")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("eager", done.stdout)
        self.assertIn("nothing meets the budget", done.stderr)
        self.assertFalse((FOLDER / "late.ht").exists())

    def test_a_model_that_draws_random_numbers(self):
        for command in (("tune", "drawing.pt2", *SHORT, "--no-cache", "-o", "drawn.ht"),
                        ("diagnose", "drawing.pt2", "--scheme", "int8wo"),
                        ("autoquant", "drawing.pt2", *SHORT, "--no-cache", "-o", "drawn.ht")):
            self.fails(1, *command, says=["this model draws random numbers (aten::randn_like", "cannot be compared"])
        self.assertFalse((FOLDER / "drawn.ht").exists())


class Refusals(CliTest):
    def test_numbers_go_with_strategies(self):
        tune = ("tune", "block.pt2", "-o", "no.ht")
        self.fails(2, *tune, "--strategy", "fastest", says=["fastest", "throughput", "latency-budget"])
        self.fails(2, *tune, "--strategy", "metric", says=["metric"])
        self.fails(2, *tune, "--budget-ms", "5", says=["--budget-ms", "latency-budget or size"])
        self.fails(2, *tune, "--strategy", "latency-budget", says=["--budget-ms", "missing"])
        self.fails(2, *tune, "--strategy", "accuracy", says=["--min-cosine", "missing"])
        self.fails(2, *tune, "--strategy", "one", says=["--candidate", "missing"])
        self.fails(2, *tune, "--min-cosine", "2", says=["--min-cosine"])
        self.fails(2, *tune, "--time-limit", "-1", says=["--time-limit"])
        self.fails(2, *tune, "--by-submodule", "--backends", "ts", says=["--by-submodule", "--backends"])
        self.fails(2, *tune, "--no-cache", "--cache", "x", says=["--cache"])

    def test_before_any_work(self):
        self.fails(2, "tune", says=["MODEL"])
        self.fails(1, "tune", "block.pt2", "-o", "no/folder/x.ht", says=["no/folder"])
        self.fails(1, "tune", "block.pt2", "-o", "x.ht", "--report", "no/folder/x.json", says=["no/folder"])
        if os.geteuid() != 0:  # root may write everywhere
            closed = FOLDER / "closed"
            closed.mkdir(mode=0o500)
            self.fails(1, "tune", "block.pt2", "-o", "closed/x.ht", says=["closed", "cannot be written"])
        self.fails(2, "tune", "block.pt2", "-o", "x.ht", "--schemes", "int8d", says=["int8d", "int8dq"])
        self.fails(2, "tune", "block.pt2", "-o", "x.ht", "--backends", "haltone", says=["haltone", "halftone"])
        self.fails(1, "tune", "no_samples.pt2", "-o", "x.ht", says=["--inputs", "input: float32 [1, 4]"])
        self.fails(1, "tune", "nowhere.pt2", "-o", "x.ht", says=["no such file"])
        self.assertFalse((FOLDER / "x.ht").exists())


if __name__ == "__main__":
    main()
