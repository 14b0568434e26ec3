"""Tests of halftone bench: a short suite through child processes, its files, checks, comparisons; failures as rows."""
import csv
import json
import os
import pathlib
import signal
import subprocess
import time

from cli_support import FOLDER, HALFTONE, CliTest, export, main, run

export("block", "classifier", "drawing")

QUICK = ("--seconds", "0.2")
FEW = ("--only", "tiny_mlp|text_cnn|gru", "--schemes", "noquant,int8weightonly", *QUICK)


def rows_of(name):
    with open(FOLDER / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class Suite(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.done = run("bench", *FEW, "-o", "all.csv", "--json", "all.json", "--html", "all.html")
        assert cls.done.returncode == 0, cls.done.stderr

    def test_rows_are_in_every_file(self):
        self.assert_narrow(self.done.stdout)
        expected = {(model, scheme) for model in ("gru", "text_cnn", "tiny_mlp") for scheme in ("noquant", "int8weightonly")}
        rows = rows_of("all.csv")
        self.assertEqual({(row["name"], row["scheme"]) for row in rows}, expected)
        for row in rows:
            self.assertEqual((row["dev"], row["mode"], row["backend"]), ("cpu", "inference", "halftone"), row)
            self.assertEqual(row["accuracy"], "pass", row)
            for column in ("speedup", "abs_latency", "compilation_latency", "compression_ratio", "eager_peak_mem", "bytes"):
                self.assertGreater(float(row[column]), 0, row)
            self.assertGreater(float(row["cosine"]), 0.98, row)
            self.assertIn(row["name"], self.done.stdout)
        results = json.loads((FOLDER / "all.json").read_text())
        self.assertEqual({(row["name"], row["scheme"]) for row in results["rows"]}, expected)
        self.assertTrue(results["machine"]["cpu"])
        self.assertTrue(any(row.get("layers") for row in results["rows"]))
        html = (FOLDER / "all.html").read_text(encoding="utf-8")
        self.assertIn("Content-Security-Policy", html)
        self.assertIn("text_cnn", html)
        for name in ("all.csv", "all.json", "all.html"):
            self.assertIn(f"wrote {name}", self.done.stderr)

    def test_check_update_and_compare(self):
        some = ("--only", "tiny_mlp", "--schemes", "noquant,int8weightonly", *QUICK)
        self.ok("bench", *some, "--check", "expected.csv", "--update")
        expected = rows_of("expected.csv")
        self.assertEqual(len(expected), 2)
        done = self.ok("bench", *some, "--check", "expected.csv", "--tolerance", "0.95", "-o", "now.csv")
        self.assert_narrow(done.stdout)
        self.rewrite(expected, speedup="1e9")  # beside other programs even 1000 was seen
        self.assertEqual(run("bench", *some, "--check", "expected.csv").returncode, 1)
        self.rewrite(expected, accuracy="fail_to_run", speedup="0.001")
        self.assertEqual(run("bench", *some, "--check", "expected.csv").returncode, 3)
        self.ok("bench", *some, "--check", "expected.csv", "--update")
        self.assertEqual({row["accuracy"] for row in rows_of("expected.csv")}, {"pass"})
        compared = self.ok("bench", "--compare", "all.csv", "now.csv")
        self.assert_narrow(compared.stdout)
        self.assertIn("tiny_mlp", compared.stdout)

    def rewrite(self, rows, **changes):
        with open(FOLDER / "expected.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows({**row, **changes} for row in rows)

    def test_accuracy_alone_says_nothing_of_speed(self):
        some = ("--only", "tiny_mlp", "--schemes", "noquant", *QUICK, "--check", "only_right.csv")
        self.ok("bench", *some, "--update")
        before = rows_of("only_right.csv")
        self.assertNotIn("slower", self.ok("bench", *some, "--accuracy").stdout)
        self.ok("bench", *some, "--accuracy", "--update")
        self.assertEqual([row["speedup"] for row in rows_of("only_right.csv")], [row["speedup"] for row in before])

    def test_partitions_share_the_suite(self):
        names = [{line.split()[0] for line in self.ok("bench", "--list", *more).stdout.splitlines()[2:]}
                 for more in ((), ("--partition", "1/3"), ("--partition", "2/3"), ("--partition", "3/3"))]
        self.assertGreaterEqual(len(names[0]), 12)
        self.assertEqual(names[1] | names[2] | names[3], names[0])
        self.assertEqual(sum(map(len, names[1:])), len(names[0]))
        self.ok("bench", "--only", "tiny_mlp|mlp", "--partition", "2/2", "--schemes", "noquant", *QUICK, "-o", "part.csv")
        self.assertEqual([row["name"] for row in rows_of("part.csv")], ["tiny_mlp"])

    def test_a_file_at_another_batch_and_a_folder(self):
        self.ok("bench", "block.pt2", "--schemes", "int8dynamic", *QUICK, "-o", "file.csv")
        self.assertEqual([(row["name"], row["accuracy"]) for row in rows_of("file.csv")], [("block.pt2", "pass")])
        folder = FOLDER / "suite"
        folder.mkdir()
        os.link(FOLDER / "block.pt2", folder / "one.pt2")
        self.assertIn("one.pt2", self.ok("bench", folder, "--list").stdout)

    def test_names_are_whole(self):
        folder = FOLDER / "long_names"
        folder.mkdir()
        os.link(FOLDER / "block.pt2", folder / "distilbert.pt2")
        done = self.ok("bench", folder, "--schemes", "int8dynamic", "--accuracy", *QUICK)
        self.assertRegex(done.stdout, r"(?m)^distilbert\.pt2 ")
        self.assert_narrow(done.stdout)

    def test_training_has_no_schemes(self):
        done = self.ok("bench", "--training", "--only", "tiny_mlp", *QUICK, "-o", "training.csv")
        self.assertRegex(done.stdout, r"tiny_mlp +4 +training +pass")
        self.assertEqual([(row["mode"], row["scheme"], row["accuracy"]) for row in rows_of("training.csv")],
                         [("training", "noquant", "pass")])


class Shapes(CliTest):
    """As in run: the same words, the same code."""

    def test_a_row_for_each(self):
        self.ok("bench", "classifier.pt2", "--shapes", "ids:7x5", "--shapes", "ids:3x5", "--schemes", "noquant", "--accuracy",
                *QUICK, "-o", "shapes.csv")
        self.assertEqual([(row["name"], row["batch_size"], row["accuracy"]) for row in rows_of("shapes.csv")],
                         [("classifier.pt2 ids:7x5", "7", "pass"), ("classifier.pt2 ids:3x5", "3", "pass")])

    def test_mistakes(self):
        for shapes, says in (("idz:7x5", 'did you mean "ids"?'), ("7x5", "names no input"), ("ids:7y5", "is no shape")):
            self.fails(2, "bench", "classifier.pt2", "--shapes", shapes, says=["--shapes", says, "ids: int64"])
        self.fails(1, "bench", "classifier.pt2", "--shapes", "ids:33x5", says=["ids", "1 to 32"])
        self.fails(2, "bench", "--only", "tiny_mlp", "--shapes", "2x3", says=["--shapes", "tiny_mlp", "--batch-sizes"])
        self.fails(2, "bench", "classifier.pt2", "--shapes", "ids:7x5", "--batch-sizes", "2", says=["--shapes", "--batch-sizes"])


class Json(CliTest):
    def test_alone_it_prints(self):
        done = self.ok("bench", "--only", "tiny_mlp", "--schemes", "noquant", "--accuracy", *QUICK, "--json")
        self.assertEqual([row["name"] for row in json.loads(done.stdout)["rows"]], ["tiny_mlp"])
        listed = json.loads(self.ok("bench", "--list", "--json").stdout)["models"]
        self.assertIn("tiny_mlp", [model["model"] for model in listed])
        self.assertGreaterEqual(len(listed), 12)

    def test_beside_expectations_stdout_is_json(self):
        some = ("bench", "--only", "tiny_mlp", "--schemes", "noquant", "--accuracy", *QUICK, "--check", "expected_json.csv")
        self.ok(*some, "--update")
        json.loads(self.ok(*some, "--json").stdout)

    def test_a_model_is_never_taken_for_the_file(self):
        before = (FOLDER / "block.pt2").read_bytes()
        for suite in ("block.pt2", "builtin", "."):
            self.fails(2, "bench", "--json", suite, says=["--json", suite, "SUITE"])
        self.assertEqual((FOLDER / "block.pt2").read_bytes(), before)
        self.fails(2, "bench", "--compare", "a.csv", "b.csv", "--json", says=["--json", "--compare"])


class Failures(CliTest):
    def test_a_time_out_is_a_row_and_the_others_run(self):
        done = run("bench", "--only", "tiny_mlp", "--schemes", "noquant", *QUICK, "--timeout", "0.01", "-o", "late.csv")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("1 of 1 row failed", done.stderr)
        self.assertEqual([row["accuracy"] for row in rows_of("late.csv")], ["timeout"])
        self.assertIn("timeout", done.stdout)

    def test_a_lack_of_memory_is_a_row(self):
        done = run("bench", "--only", "tiny_mlp", "--schemes", "noquant", *QUICK, "--memory-limit", "20MB", "-o", "small.csv")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([row["accuracy"] for row in rows_of("small.csv")], ["OOM"])

    def test_a_crash_is_a_row_and_the_others_run(self):
        command = [HALFTONE, "bench", "--only", "tiny_mlp", "--schemes", "noquant,int8weightonly", *QUICK, "-o", "crash.csv"]
        with subprocess.Popen(command, cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parent:
            os.kill(self.child_of(parent.pid), signal.SIGSEGV)
            parent.communicate(timeout=120)
            self.assertEqual(parent.returncode, 1)
        crashed, other = rows_of("crash.csv")
        self.assertEqual((crashed["scheme"], crashed["accuracy"]), ("noquant", "fail_to_run"))
        self.assertIn("SIGSEGV", crashed["error"])
        self.assertEqual((other["scheme"], other["accuracy"]), ("int8weightonly", "pass"))

    def child_of(self, parent):
        """The first child that is past its exec."""
        for _ in range(3000):
            children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            for child in children:
                if b"bench-child" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                    return int(child)
            time.sleep(0.01)
        raise AssertionError("no child was started")

    def test_a_busy_machine_gives_no_speed(self):
        done = run("bench", "--only", "tiny_mlp", "--schemes", "noquant", *QUICK, "-o", "busy.csv",
                   env={**os.environ, "HALFTONE_BUSY": "always"})
        self.assertEqual(done.returncode, 1, done.stderr)
        row, = rows_of("busy.csv")
        self.assertEqual((row["accuracy"], row["speedup"], row["abs_latency"]), ("pass", "", ""))
        self.assertIn("too busy to say", done.stdout)

    def test_a_model_that_draws_random_numbers(self):
        done = run("bench", "drawing.pt2", "--schemes", "noquant", *QUICK, "-o", "drawn.csv")
        self.assertEqual(done.returncode, 1, done.stderr)
        row, = rows_of("drawn.csv")
        self.assertEqual((row["accuracy"], row["speedup"]), ("eager_two_runs_differ", ""))
        self.assertIn("this model draws random numbers (aten::randn_like", row["error"])

    def test_refuses_what_makes_no_sense(self):
        self.fails(1, "bench", "--only", "tiny_mpl", says=["tiny_mpl"])
        self.fails(1, "bench", "no_such_folder", says=["no_such_folder"])
        self.fails(2, "bench", "--schemes", "int9dynamic", "--only", "tiny_mlp", says=["int9dynamic"])
        self.fails(2, "bench", "--partition", "5/4", says=["5/4"])
        self.fails(2, "bench", "--preset", "002", says=["002"])
        self.fails(2, "bench", "--set", "epilog_fusion=true", says=["epilog_fusion", "did you mean"])
        self.fails(1, "bench", "--check", "none.csv", says=["none.csv"])
        self.fails(1, "bench", "-o", "no/folder.csv", says=["no such folder"])
        self.fails(2, "bench", "--update", says=["--check"])
        self.fails(2, "bench", "--compare", "all.csv", says=["--compare"])
        self.fails(2, "bench", "--batch-sizes", "0", says=["--batch-sizes"])


class Options(CliTest):
    def test_are_printed_and_switched_one_by_one(self):
        done = self.ok("bench", "--preset", "001", "--print-options")
        self.assert_narrow(done.stdout)
        self.assertRegex(done.stdout, r"epilogue_fusion +false")
        self.assertRegex(done.stdout, r"recompile_limit +10000")
        done = self.ok("bench", "--preset", "001", "--set", "epilogue_fusion=true", "--set", "recompile_limit=3", "--print-options")
        self.assertRegex(done.stdout, r"epilogue_fusion +true")
        self.assertRegex(done.stdout, r"recompile_limit +3")

    def test_reach_the_children(self):
        self.ok("bench", "--only", "tiny_mlp", "--schemes", "noquant", "--preset", "001", "--in-process", *QUICK, "-o", "preset.csv")
        self.ok("bench", "--only", "tiny_mlp", "--schemes", "noquant", "--preset", "001", *QUICK, "-o", "preset.csv")
        self.assertEqual([row["accuracy"] for row in rows_of("preset.csv")], ["pass", "pass"])


if __name__ == "__main__":
    main()
