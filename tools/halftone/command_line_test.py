"""Tests of the command line as a whole: help, exit codes, options that are checked, files that are no models."""
import re
import shutil
import subprocess

import torch
from safetensors.torch import save_file

from cli_support import FOLDER, HALFTONE, CliTest, export, main

export("classifier", "counter")


class CommandLine(CliTest):
    def test_version_names_both(self):
        built_with = re.escape(torch.__version__.split("+")[0])
        self.assertRegex(self.ok("--version").stdout, rf"^halftone \d+\.\d+\.\d+ \(torch {built_with}\)\n$")

    def test_help_has_examples_and_is_a_result(self):
        for arguments in (["--help"], ["autoquant", "--help"], ["bench", "--help"], ["inspect", "--help"], ["kernels", "--help"],
                          ["run", "--help"], ["tune", "--help"], ["verify", "--help"]):
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


if __name__ == "__main__":
    main()
