"""Tests of halftone autoquant: what it writes, replaying a plan, plans edited by hand, the cache."""
import json

import torch
from safetensors.torch import load_file, save_file

from cli_support import FOLDER, CliTest, export, main, run

export("block", "counter", "no_samples")

# Little time: what is tested here is the command, not the planner.
SHORT = ("--time-limit", "6", "--cache", "cache")


class Autoquant(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.first = run("autoquant", "block.pt2", *SHORT, "--plan-out", "plan.json", "-o", "first.ht")
        assert cls.first.returncode == 0, cls.first.stderr

    def replay(self, plan, output, *more):
        (FOLDER / "edited.json").write_text(json.dumps(plan))
        return self.ok("autoquant", "block.pt2", "--plan", "edited.json", "-o", output, *more)

    def test_says_what_each_layer_gets(self):
        self.assert_narrow(self.first.stdout)
        self.assertNotIn("problems measured", self.first.stderr)  # for --verbose
        plan = json.loads((FOLDER / "plan.json").read_text())
        self.assertEqual({layer["name"] for layer in plan["layers"]}, {"up", "down"})
        for layer in plan["layers"]:
            self.assertIn(layer["name"], self.first.stdout)
            self.assertIn(layer["choice"], self.first.stdout)
            self.assertTrue(layer["reason"])
            self.assertIn("fp32", {candidate["scheme"] for candidate in layer["candidates"]})
            self.assertTrue(layer["shapes"])
        self.assertEqual(sum(each["chosen"] for each in plan["runs"]), 1 if plan["runs"] else 0)
        for each in plan["runs"]:
            self.assertLessEqual(each["relative_low"], each["relative"])
            self.assertTrue(each["relative_high"] == 0 or each["relative_high"] >= each["relative"], each)
        # What is said is what the table says: a model that is faster there is never called slower.
        self.assertNotIn("was faster than fp32", self.first.stdout)
        self.assertIn("written: first.ht", self.first.stdout)
        self.assertIn("wrote plan.json", self.first.stderr)
        self.assertIn("is sound", self.ok("verify", "first.ht").stdout)

    def test_the_plan_replayed_gives_the_same_bytes(self):
        replayed = self.ok("autoquant", "block.pt2", "--plan", "plan.json", "-o", "replayed.ht").stdout
        self.assertIn("Replayed from plan.json, measured at", replayed)
        for story in ("planned in", "problems", "time limit", "whole model"):
            self.assertNotIn(story, replayed)
        self.assertEqual((FOLDER / "first.ht").read_bytes(), (FOLDER / "replayed.ht").read_bytes())
        # Also with other inputs than it was measured with: a file is made of the model and the plan.
        save_file({"x": torch.randn(3, 70, 64)}, FOLDER / "x.safetensors")
        self.ok("autoquant", "block.pt2", *SHORT, "--inputs", "x.safetensors", "--schemes", "int8dq", "--plan-out",
                "other.json", "-o", "other.ht")
        self.ok("autoquant", "block.pt2", "--plan", "other.json", "-o", "other_replayed.ht")
        self.assertEqual((FOLDER / "other.ht").read_bytes(), (FOLDER / "other_replayed.ht").read_bytes())

    def test_a_plan_written_by_hand(self):
        plan = {"layers": [{"name": "up", "choice": "int8wo"}, {"name": "down", "choice": "int4wo-int8act"}]}
        done = json.loads(self.replay(plan, "hand.ht", "--json").stdout)
        self.assertLess(done["bytes_after"], done["bytes_before"] / 2)
        self.assertEqual(done["output_bytes"], (FOLDER / "hand.ht").stat().st_size)
        configs = json.loads(self.ok("verify", "hand.ht", "--json").stdout)
        self.assertIn("LayerwiseBackend", json.dumps(configs))
        self.ok("run", "block.pt2", "--outputs", "eager.safetensors")
        self.ok("run", "hand.ht", "--outputs", "hand.safetensors")
        expected, got = (load_file(FOLDER / f"{name}.safetensors")["output_0"].flatten() for name in ("eager", "hand"))
        self.assertGreater(torch.cosine_similarity(expected, got, dim=0).item(), 0.99)

    def test_a_plan_of_fp32_keeps_the_model(self):
        done = self.replay({"layers": [{"name": "up", "choice": "fp32"}]}, "fp32.ht")
        self.assertIn("no layer is quantized", done.stdout)
        self.ok("run", "fp32.ht")

    def test_plans_are_checked(self):
        for layers, says in (([{"name": "up", "choice": "int8dp"}], ["layers[0].choice", "int8dp", "did you mean"]),
                             ([{"name": "up"}], ["layers[0]", "choice"]),
                             ([{"name": "over", "choice": "int8wo"}], ["over", "no such layer"]),
                             ([{"name": "up\x1b[2J", "choice": "int8wo"}], ["up\\x1b[2J", "no such layer"]),
                             ([{"name": "up", "choice": "int8wo", "n": 3, "k": 4}], ["up", "3 × 4"])):
            (FOLDER / "broken.json").write_text(json.dumps({"layers": layers}))
            self.fails(1, "autoquant", "block.pt2", "--plan", "broken.json", "-o", "broken.ht", says=says)
            self.assertFalse((FOLDER / "broken.ht").exists())
        self.fails(1, "autoquant", "block.pt2", "--plan", "none.json", "-o", "broken.ht", says=["none.json"])

    def test_refuses_what_makes_no_sense(self):
        self.fails(2, "autoquant", "block.pt2", says=["-o OUT.ht is missing"])
        self.fails(1, "autoquant", "counter.pt2", *SHORT, "-o", "x.ht", says=["NotAutoquantizable"])
        self.fails(1, "autoquant", "no_samples.pt2", *SHORT, "-o", "x.ht", says=["inputs"])
        self.fails(2, "autoquant", "block.pt2", "--schemes", "int9", "-o", "x.ht", says=["int9"])
        self.fails(1, "autoquant", "block.pt2", "-o", "no/folder.ht", says=["no such folder"])
        self.fails(2, "autoquant", "-o", "x.ht", says=["MODEL"])
        self.fails(2, "autoquant", "block.pt2", "--plan", "p.json", "--schemes", "int8wo", "-o", "x.ht", says=["--plan"])
        self.fails(2, "autoquant", "block.pt2", "--min-cosine", "1.5", "-o", "x.ht", says=["--min-cosine"])

    def test_the_cache_can_be_seen_and_cleared(self):
        self.ok("autoquant", "block.pt2", "--time-limit", "6", "--schemes", "int8wo", "--cache", "seen", "--plan-out", "p.json")
        shown = self.ok("autoquant", "--show-cache", "--cache", "seen")
        self.assert_narrow(shown.stdout)
        self.assertIn("int8wo", shown.stdout)
        entries = json.loads(self.ok("autoquant", "--show-cache", "--cache", "seen", "--json").stdout)["entries"]
        self.assertTrue(entries)
        self.assertTrue(all(entry["milliseconds"] > 0 for entry in entries))
        removed = json.loads(self.ok("autoquant", "--clear-cache", "--cache", "seen", "--json").stdout)["removed"]
        self.assertGreaterEqual(removed, len(entries))
        self.assertEqual(json.loads(self.ok("autoquant", "--show-cache", "--cache", "seen", "--json").stdout)["entries"], [])

    def test_the_name_among_the_schemes(self):
        self.assertIn("halftone autoquant", self.ok("schemes").stdout)
        self.assert_narrow(self.ok("schemes").stdout)
        self.assertIn("autoquant", json.loads(self.ok("schemes", "--json").stdout)["measured"])
        done = self.ok("quantize", "block.pt2", "--scheme", "autoquant", "--exclude", "down", "-o", "quantized.ht",
                       env={"XDG_CACHE_HOME": str(FOLDER / "home"), "HALFTONE_BUSY": "ignore"})
        self.assertIn("written: quantized.ht", done.stdout)
        self.assertNotIn("down", done.stdout.split("written")[0].replace("block", ""))
        self.fails(2, "quantize", "block.pt2", "--scheme", "autoquant", "--group-size", "64", "-o", "x.ht", says=["autoquant"])
        self.fails(2, "diagnose", "block.pt2", "--scheme", "autoquant", says=["halftone autoquant"])

    def test_is_a_candidate_of_tune(self):
        done = self.ok("tune", "block.pt2", "--time-limit", "15", "--no-cache", "--schemes", "autoquant", "--report", "tuned.json")
        self.assertIn("autoquant", {each["name"] for each in json.loads((FOLDER / "tuned.json").read_text())["candidates"]},
                      done.stdout)


if __name__ == "__main__":
    main()
