#!/usr/bin/env python3
"""The Makefile's promises: what each target installs and builds, and that scripts/minutes and scripts/setup say what they do."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=ROOT, **options)


def dry_run(target):
    done = run("make", "--dry-run", "--always-make", "BUILD=no-such-build", target)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Targets(unittest.TestCase):
    def test_demo_takes_only_what_the_demo_runs(self):
        commands = dry_run("demo")
        self.assertRegex(commands, r"scripts/setup base\n")
        self.assertNotRegex(commands, r"scripts/setup [^\n]*test")
        self.assertIn("-DHALFTONE_TESTS=OFF", commands)
        self.assertRegex(commands, r"--target halftone_cli embed_sentences\n")

    def test_build_has_no_tests(self):
        self.assertIn("-DHALFTONE_TESTS=OFF", dry_run("build"))

    def test_test_does_everything(self):
        commands = dry_run("test")
        self.assertIn("scripts/setup base test", commands)
        self.assertIn("-DHALFTONE_TESTS=ON", commands)
        self.assertIn("--no-tests=error", commands)

    def test_ci_runs_make_test(self):
        lines = (ROOT / ".ci" / "run").read_text().splitlines()
        self.assertEqual(lines[-1], "exec make test")


class Minutes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        run("scripts/minutes", "begin", self.folder.name)

    def test_stages_are_shown_in_order(self):
        run("scripts/minutes", "run", self.folder.name, "set-up", "true")
        run("scripts/minutes", "run", self.folder.name, "sleeping a second", "sleep", "1.2")
        text = run("scripts/minutes", "show", self.folder.name).stdout
        self.assertRegex(text, r"0:00  set-up\n +0:0[1-9]  sleeping a second\n +0:0[1-9]  in all\n")

    def test_a_failure_stays_one(self):
        done = run("scripts/minutes", "run", self.folder.name, "failing", "sh", "-c", "exit 7")
        self.assertEqual(done.returncode, 7)
        self.assertIn("failing", run("scripts/minutes", "show", self.folder.name).stdout)

    def test_slowest_compilations_and_tests(self):
        folder = pathlib.Path(self.folder.name)
        (folder / ".ninja_log").write_text("# ninja log v7\n0\t65000\t0\tsrc/x/CMakeFiles/x.dir/Unity/unity_1_cxx.cxx.o\tab\n"
                                           "0\t2000\t0\tsrc/y.o\tcd\n")
        (folder / "Testing" / "Temporary").mkdir(parents=True)
        (folder / "Testing" / "Temporary" / "LastTest.log").write_text(
            "1/2 Testing: a\n1/2 Test: a\nTest time =  61.20 sec\n2/2 Test: b\nTest time =   3.00 sec\n")
        text = run("scripts/minutes", "show", self.folder.name).stdout
        self.assertRegex(text, r"1:05  src/x/x, batch 1\n +0:02  src/y.o\n")
        self.assertRegex(text, r"1:01  a\n +0:03  b\n")


class Setup(unittest.TestCase):
    def test_unknown_groups_are_refused(self):
        done = run("scripts/setup", "everything")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown group everything: base, test, chat, lint, docs, package or python", done.stderr)

    def test_another_torch_is_one_line(self):
        with tempfile.TemporaryDirectory() as name:
            copy = pathlib.Path(name) / "scripts"
            copy.mkdir()
            (copy / "setup").write_text(self.only_python())
            done = subprocess.run(["bash", str(copy / "setup"), "base"], capture_output=True, text=True,
                                  env={**os.environ, "HALFTONE_TORCH_VERSION": "2.12.1"})
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(done.stderr, "setup: HALFTONE_TORCH_VERSION is 2.12.1; Halftone builds with torch 2.13 to 2.15\n")
            self.assertFalse((pathlib.Path(name) / ".venv").exists())

    @staticmethod
    def only_python():
        """The script without its Debian packages: a test installs nothing."""
        text = (ROOT / "scripts" / "setup").read_text()
        shorter = re.sub(r"readonly (\w+_PACKAGES)=\([^)]*\)", r"readonly \1=()", text)
        assert shorter != text
        return shorter


if __name__ == "__main__":
    unittest.main()
