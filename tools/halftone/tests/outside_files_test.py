"""Tests of files that are none, of forged caches, of loops without end, and of Ctrl-C."""
import hashlib
import json
import os
import signal
import subprocess
import time
import unittest

import torch
from torch import nn
from torch._higher_order_ops.while_loop import while_loop

from cli_support import FOLDER, HALFTONE, CliTest, export, main

FEW = ("--time-limit", "1", "--schemes", "int8wo", "--backends", "halftone")


class Endless(nn.Module):
    """Runs endlessly on positive inputs."""

    def forward(self, x):
        (y,) = while_loop(lambda x: x.sum() > 0, lambda x: (x * 1.0,), (x,))
        return y


def no_files():
    """Paths that are no regular files: reading them never ends, or never begins."""
    pipe, zero = FOLDER / "pipe", FOLDER / "zero"
    if not pipe.exists():
        os.mkfifo(pipe)
        zero.symlink_to("/dev/zero")
    return pipe, zero, FOLDER


class NoFiles(CliTest):
    def test_models_configs_and_inputs_are_regular_files(self):
        for path in no_files():
            for command in (("run", path), ("inspect", path), ("quantize", path, "--scheme", "int8wo", "-o", "never.ht"),
                            ("tune", path, "--no-cache", "-o", "never.ht"),
                            ("run", "block.pt2", "--inputs", path),
                            ("ptq", "block.pt2", "--data", "block.pt2", "--qconfig", path, "-o", "never.ht"),
                            ("ptq", "block.pt2", "--data", "block.pt2", "--statistics", path, "-o", "never.ht")):
                self.fails(1, *command, says=[path.name])
        self.assertFalse((FOLDER / "never.ht").exists())

    def test_models_by_name(self):
        for path in no_files()[:2]:
            for ending in (".ht", ".pt2"):
                named = path.with_name(path.name + ending)
                named.symlink_to(path)
                for command in ("run", "inspect", "verify"):
                    self.fails(1, command, named, says=["regular file"] if command != "verify" else [])

    def test_a_text_that_fills_the_memory_is_refused(self):
        with open(FOLDER / "huge.json", "wb") as file:
            file.truncate(1 << 40)
        self.fails(1, "ptq", "block.pt2", "--data", "block.pt2", "--qconfig", "huge.json", "-o", "never.ht", says=["huge.json", "at most"])


class Caches(CliTest):
    def tuned(self, *more):
        done = self.ok("tune", "block.pt2", *FEW, "--json", "--report", "outside.json", "--cache", "outside", *more)
        return json.loads(done.stdout), done.stderr

    def test_a_cache_that_is_no_measurement_is_one_line_and_measured_anew(self):
        self.assertFalse(self.tuned()[0]["from_cache"])
        self.assertTrue(self.tuned()[0]["from_cache"])
        (file,) = (FOLDER / "outside").glob("tune-*.json")
        good = json.loads(file.read_text())
        for number, put in enumerate((lambda: os.mkfifo(file), lambda: file.symlink_to("/dev/zero"), lambda: file.mkdir(),
                                      lambda: file.write_text("{"), lambda: self.truncate(file))):
            file.unlink()
            put()
            report, said = self.tuned()
            self.assertFalse(report["from_cache"], number)
            self.assertIn("cache of tunings", said)
            if file.is_dir():
                file.rmdir()
                file.write_text("")
            elif not file.is_file() or file.is_symlink():
                file.unlink()
                file.write_text("")
        self.change_reports(file, good)

    @staticmethod
    def truncate(file):
        with open(file, "wb") as sparse:
            sparse.truncate(1 << 40)

    def change_reports(self, file, good):
        """Reports with a right checksum and wrong content: what an attacker can write."""

        def nothing(report):
            report["candidates"] = []

        def renamed(report):
            report["candidates"][-1]["name"] = "another"

        def endless(report):
            report["candidates"][-1]["latency_ms"] = "-Infinity"

        def negative(report):
            report["candidates"][-1]["times"][0]["median_ms"] = -1

        def doubled(report):
            report["candidates"].append(report["candidates"][-1])

        for change in (nothing, renamed, endless, negative, doubled):
            report = json.loads(good["report"])
            change(report)
            text = json.dumps(report)
            file.write_text(json.dumps({**good, "report": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}))
            measured, said = self.tuned()
            self.assertFalse(measured["from_cache"], change.__name__)
            self.assertIn("cache of tunings", said)


class AutoquantCaches(CliTest):
    """Forged times and plans: a line says so, and only measured ones count."""

    def planned(self):
        done = self.ok("autoquant", "block.pt2", "--time-limit", "2", "--schemes", "int8wo", "--cache", "planned", "--plan-out", "plan.json")
        return json.loads((FOLDER / "plan.json").read_text()), done.stderr

    def shown(self):
        done = self.ok("autoquant", "--show-cache", "--cache", "planned", "--json")
        return json.loads(done.stdout)["entries"], done.stderr

    def test_times(self):
        self.planned()
        times = FOLDER / "planned/autoquant-times.json"
        self.assertTrue(self.shown()[0])
        for put in (lambda: os.mkfifo(times), lambda: times.symlink_to("/dev/zero"), lambda: times.write_text("[" * 1000000),
                    lambda: times.write_text(json.dumps({"format": "halftone-autoquant-times", "times": [{"milliseconds": float("nan")}]})),
                    lambda: times.write_text(json.dumps({"format": "halftone-autoquant-times", "times": 10**30}))):
            times.unlink()
            put()
            entries, said = self.shown()
            self.assertEqual(entries, [])
            self.assertIn("autoquant's cache", said)

    def test_plans_of_other_layers(self):
        """With right checksums: what an attacker can write."""
        good, _ = self.planned()
        (file,) = (FOLDER / "planned").glob("autoquant-plan-*.json")
        stored = json.loads(file.read_text())
        for change in ({"name": "another"}, {"n": 7}, {"choice": "int9"}, {"k": -1}):
            plan = json.loads(stored["plan"])
            plan["layers"][0].update(change)
            text = json.dumps(plan)
            file.write_text(json.dumps({**stored, "plan": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}))
            planned, said = self.planned()
            self.assertIn("autoquant's cache", said, change)
            self.assertEqual([layer["name"] for layer in planned["layers"]], [layer["name"] for layer in good["layers"]])


class Loops(CliTest):
    def test_a_loop_without_end_is_stopped(self):
        for command in (("run", "endless.pt2"), ("tune", "endless.pt2", "--no-cache", "--time-limit", "5", "-o", "never.ht")):
            self.fails(1, *command, "--max-steps", "50", says=["while_loop", "more than 50 steps"])
        self.fails(2, "run", "endless.pt2", "--max-steps", "0", says=["--max-steps"])

    def test_interrupts_of_isolated_trials_leave_nothing(self):
        """At any moment: before, while and after the model is written for the children."""
        folder = FOLDER / "interrupted"
        folder.mkdir()
        command = [HALFTONE, "tune", "block.pt2", "--isolate", "--no-cache", "--time-limit", "60", "-o", "never.ht"]
        seen = False
        for moment in (0.3, 0.6, 0.9, 1.2, 1.6, 2.0, 2.5, 3.0):
            with subprocess.Popen(command, cwd=FOLDER, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                  env={**os.environ, "TMPDIR": str(folder)}) as child:
                time.sleep(moment)
                seen = seen or any(folder.glob("halftone-trial-*"))
                child.send_signal(signal.SIGINT)
                child.communicate(timeout=60)
            self.assertEqual(list(folder.iterdir()), [], f"after {moment} s")
        self.assertTrue(seen, "no trial was interrupted")

    def test_interrupts_end_it_at_once_and_leave_nothing(self):
        before = set(FOLDER.iterdir())
        for command in (("run", "endless.pt2", "--max-steps", "1000000000"),
                        ("tune", "endless.pt2", "--max-steps", "1000000000", "--no-cache", "-o", "never.ht")):
            child = subprocess.Popen([HALFTONE, *command], cwd=FOLDER, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
            time.sleep(3)
            self.assertIsNone(child.poll(), "it should still be running")
            start = time.monotonic()
            child.send_signal(signal.SIGINT)
            said = child.communicate(timeout=60)[1].decode()
            self.assertLess(time.monotonic() - start, 5)
            self.assertEqual(child.returncode, 130, said)
            self.assertIn("interrupted; nothing written", said)
        self.assertEqual(set(FOLDER.iterdir()), before)


if __name__ == "__main__":
    export("block")
    torch.export.save(torch.export.export(Endless(), (torch.ones(3),)), FOLDER / "endless.pt2")
    main()
