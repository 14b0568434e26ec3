"""Tests of the command line as a whole: help, exit codes, options that are checked, files that are no models."""
import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import termios

import torch
from safetensors.torch import load_file, save_file

from cli_support import FOLDER, GOLDEN, HALFTONE, CliTest, export, main

export("classifier", "counter")
COMMANDS = ("autoquant", "bench", "chat", "compare", "completion", "diagnose", "eval", "generate", "inspect", "kernels", "minify", "ptq", "quantize", "run", "tune",
            "verify")


def in_terminal(*arguments, columns=100, **env):
    """What a terminal shows: stdout and stderr."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([HALFTONE, *arguments], stdout=follower, stderr=follower, cwd=FOLDER, env=env) as process:
        os.close(follower)
        text = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            text += piece
    os.close(leader)
    return process.returncode, text.decode()


class CommandLine(CliTest):
    def test_version_names_both(self):
        built_with = re.escape(torch.__version__.split("+")[0])
        self.assertRegex(self.ok("--version").stdout, rf"^halftone \d+\.\d+\.\d+ \(torch {built_with}\)\n$")

    def test_help_has_examples_and_is_a_result(self):
        for arguments in (["--help"], *([command, "--help"] for command in COMMANDS)):
            done = self.ok(*arguments)
            self.assertIn("Examples:\n  halftone ", done.stdout)
            self.assertEqual(done.stderr, "")
            self.assert_narrow(done.stdout)

    def test_help_shows_no_parser_internals(self):
        self.assertIn("--explain M N K SCHEME  ", self.ok("kernels", "--help").stdout)
        self.assertIn("  --no-mmap  ", self.ok("run", "--help").stdout)

    def test_help_of_run_tells_about_state(self):
        self.assertIn("reset state", self.ok("run", "--help").stdout)

    def test_wrong_command_lines(self):
        self.fails(2)
        self.fails(2, "dance", says=['no command "dance"', "--help"])
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
        for arguments in (["run", "classifier.pt2", "--duration"], ["tune", "classifier.pt2", "--time-limit"],
                          ["autoquant", "classifier.pt2", "-o", "x.ht", "--time-limit"]):
            for number in ("0", "-1", "nan", "inf", "x"):
                done = self.fails(2, *arguments, number, says=[arguments[-1], f"{number} is not a number above 0"])
                self.assertLess(len(done.stderr), 200)
        self.fails(2, "minify", "classifier.pt2", "--backend", "ts", "--tolerance", "-1", says=["-1 is not a number of 0 or more"])

    def test_unknown_backend_lists_the_known(self):
        self.fails(2, "run", "classifier.pt2", "--backend", "gpu", says=["'gpu'", "known: eager"])

    def test_outputs_must_match_inputs(self):
        self.fails(2, "run", "counter.pt2", "--outputs", "a", "--outputs", "b", says=["--outputs"])
        self.fails(2, "run", "counter.pt2", "--inputs", "x", "--inputs", "x", "--outputs", "a", says=["--outputs"])
        self.fails(2, "run", "counter.pt2", "--inputs", "x", "--inputs", "x", "--outputs", "a", "--outputs", "a",
                   says=["same file"])


    def test_misspelt_commands_and_options_get_the_nearest_name(self):
        self.fails(2, "rnu", "counter.pt2", says=['no command "rnu"', 'did you mean "run"?', "ptq"])
        self.fails(2, "quantise", says=['did you mean "quantize"?'])
        self.fails(2, "run", "--repaet", "3", "counter.pt2", says=["no option --repaet", 'did you mean "--repeat"?'])
        self.fails(2, "--json", "run", "counter.pt2", says=["behind the command", "halftone run"])
        self.fails(2, "run", "counter.pt2", "another.pt2", says=['"another.pt2" was not expected'])

    def test_help_is_a_command_too(self):
        self.assertEqual(self.ok("help").stdout, self.ok("--help").stdout)
        self.assertEqual(self.ok("help", "run").stdout, self.ok("run", "--help").stdout)

    def test_wrong_names_are_wrong_command_lines(self):
        for arguments in (["quantize", "counter.pt2", "--scheme", "int8", "-o", "x.ht"], ["quantize", "counter.pt2", "--scheme", "int8wo"],
                          ["quantize", "counter.pt2", "--scheme", "int8wo", "--override", "fc1", "-o", "x.ht"],
                          ["kernels", "--explain", "a", "b", "c", "int8wo"], ["kernels", "--explain", "1", "2", "3", "int99"],
                          ["minify", "counter.pt2", "--backend", "foo"], ["autoquant", "counter.pt2"],
                          ["quantize", "counter.pt2", "--scheme", "int8wo", "--include", "[", "-o", "x.ht"],
                          ["quantize", "counter.pt2", "--scheme", "int8wo", "--override", "[=int4wo", "-o", "x.ht"],
                          ["autoquant", "counter.pt2", "--exclude", "(", "-o", "x.ht"], ["bench", "--only", "["],
                          ["bench", "counter.pt2", "--partition", "5/4"], ["bench", "counter.pt2", "--set", "fusion=true"]):
            self.fails(2, *arguments)

    def test_wrong_names_come_with_the_nearest_and_all_known(self):
        for arguments, says in (
                (["tune", "counter.pt2", "--schemes", "int8wp"], ['did you mean "int8wo"?', "int4wo-int8act"]),
                (["tune", "counter.pt2", "--backends", "haltone"], ['did you mean "halftone"?', "known: halftone", "eager"]),
                (["tune", "counter.pt2", "--by-submodule", "--schemes", "int9wo"], ['did you mean "int8wo"?']),
                (["tune", "counter.pt2", "--strategy", "one", "--candidate", "int8d"], ['did you mean "int8dq"?', "int8static"]),
                (["autoquant", "counter.pt2", "--schemes", "int9wo", "-o", "x.ht"], ['did you mean "int8wo"?', "int8dq-7bit"]),
                (["bench", "counter.pt2", "--schemes", "int9wo"], ['did you mean "int8wo"?', "int8dynamic"]),
                (["bench", "counter.pt2", "--backend", "foo"], ["foo", "aot_eager"]),
                (["bench", "counter.pt2", "--preset", "foo"], ["foo", "001"]),
                (["ptq", "counter.pt2", "--data", "x", "--backend-config", "foo", "-o", "x.ht"], ["foo", "native"]),
                (["ptq", "counter.pt2", "--data", "x", "--qconfig", "foo", "-o", "x.ht"], ["foo", "fbgemm"]),
                (["run", "counter.pt2", "--backend", "halftone", "--disable-pass", "fuse_gelus"], ["--disable-pass", "known: "])):
            with self.subTest(arguments):
                self.fails(2, *arguments, says=says)


class Width(CliTest):
    NAMES = "a_rather_long_name_of_a_block"

    def bare(self, **more):
        return {key: value for key, value in {**os.environ, **more}.items() if key != "COLUMNS" or more}

    def test_nothing_is_cut_in_a_pipe(self):
        table = self.ok("inspect", "classifier.pt2", env=self.bare()).stdout
        self.assertIn(self.NAMES, table)

    def test_columns_says_the_width(self):
        narrow = self.ok("inspect", "classifier.pt2", env=self.bare(COLUMNS="60")).stdout
        self.assertLessEqual(max(map(len, narrow.splitlines())), 75)  # columns of numbers are never cut
        self.assertNotIn(self.NAMES, narrow)

    def test_a_terminal_says_it_too(self):
        code, text = in_terminal("inspect", "classifier.pt2", columns=230, **self.bare())
        self.assertEqual(code, 0)
        self.assertIn(self.NAMES, text)

    def test_terminals_without_utf8_get_plain_letters(self):
        for locale, wanted in (("C", "1~32"), ("C.UTF-8", "1…32")):
            _, text = in_terminal("inspect", "classifier.pt2", **{**self.bare(), "LC_ALL": locale})
            self.assertIn(wanted, text)
        self.assertTrue(in_terminal("inspect", "classifier.pt2", **{**self.bare(), "LC_ALL": "C"})[1].isascii())
        _, verified = in_terminal("verify", GOLDEN / "v2_backend_int8dq.ht", **{**self.bare(), "LC_ALL": "C"})
        self.assertRegex(verified, r"needs Halftone >= \d")
        piped = self.ok("inspect", "classifier.pt2", env={**self.bare(), "LC_ALL": "C"})
        self.assertIn("1…32", piped.stdout)


class Outputs(CliTest):
    def test_the_model_itself_is_not_overwritten(self):
        shutil.copy(FOLDER / "classifier.pt2", FOLDER / "self.pt2")
        before = (FOLDER / "self.pt2").read_bytes()
        self.fails(2, "quantize", "self.pt2", "--scheme", "int8wo", "-o", "self.pt2", says=["the model itself", "--force"])
        self.fails(2, "quantize", "self.pt2", "--scheme", "int8wo", "-o", "./self.pt2", says=["the model itself"])
        self.assertEqual((FOLDER / "self.pt2").read_bytes(), before)

    def test_no_command_overwrites_what_it_reads(self):
        shutil.copy(FOLDER / "classifier.pt2", FOLDER / "self.pt2")
        save_file({"x": torch.ones(3)}, FOLDER / "x.safetensors")
        (FOLDER / "plan.json").write_text("{}")
        files = ("self.pt2", "x.safetensors", "plan.json")
        before = [(FOLDER / name).read_bytes() for name in files]
        for arguments in (["tune", "self.pt2", "-o", "self.pt2"], ["tune", "self.pt2", "--report", "self.pt2"],
                          ["tune", "self.pt2", "--inputs", "x.safetensors", "-o", "x.safetensors"],
                          ["autoquant", "self.pt2", "-o", "./self.pt2"], ["autoquant", "self.pt2", "--plan-out", "self.pt2"],
                          ["autoquant", "self.pt2", "--plan", "plan.json", "-o", "plan.json"],
                          ["quantize", "self.pt2", "--scheme", "autoquant", "-o", "self.pt2"],
                          ["ptq", "self.pt2", "--data", "x.safetensors", "-o", "x.safetensors"],
                          ["bench", "self.pt2", "--html", "self.pt2"], ["bench", "self.pt2", "-o", "self.pt2"],
                          ["run", "counter.pt2", "--inputs", "x.safetensors", "--outputs", "x.safetensors"],
                          ["run", "self.pt2", "--outputs", "self.pt2"]):
            with self.subTest(arguments):
                self.fails(2, *arguments, says=["would be lost", "--force"])
        self.assertEqual([(FOLDER / name).read_bytes() for name in files], before)
        self.ok("run", "counter.pt2", "--inputs", "x.safetensors", "--outputs", "x.safetensors", "--force")
        self.assertEqual(list(load_file(FOLDER / "x.safetensors")), ["output_0"])

    def test_folders_are_checked_first(self):
        self.fails(1, "quantize", "nowhere.pt2", "--scheme", "int8wo", "-o", "no/folder/x.ht", says=["no/folder", "no such folder"])
        self.fails(1, "quantize", "nowhere.pt2", "--scheme", "int8wo", "-o", ".", says=["directory"])

    def test_what_cannot_be_written_is_said_before_any_work(self):
        """Where even root cannot write, and devices, which no file can replace. The model is missing too: it comes later."""
        closed = FOLDER / "closed"
        closed.mkdir(mode=0o500)
        places = ["/proc/x.ht"] + ([] if os.geteuid() == 0 else ["closed/x.ht"])
        for output in places:
            for command in (["tune"], ["autoquant"], ["quantize", "--scheme", "int8wo"], ["ptq", "--data", "x.npz"]):
                self.fails(1, command[0], "nowhere.pt2", *command[1:], "-o", output, says=[output, "cannot be written"])
        for command in (["tune"], ["autoquant"], ["quantize", "--scheme", "int8wo"], ["ptq", "--data", "x.npz"]):
            self.fails(1, command[0], "nowhere.pt2", *command[1:], "-o", "/dev/null", says=["/dev/null", "not a regular file"])
        self.fails(1, "run", "nowhere.pt2", "--outputs", "/dev/full", says=["/dev/full", "not a regular file"])
        for option in ("--report", "-o"):
            self.fails(1, "tune", "nowhere.pt2", option, "/proc/x.json", says=["/proc/x.json", "cannot be written"])
        self.assertEqual([path.name for path in FOLDER.glob(".halftone-*")] + list(closed.iterdir()), [])


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
        self.fails(1, "run", "notes.txt", says=["a text file"])
        (FOLDER / "notes.pt2").write_text("hello")  # whatever its name
        self.fails(1, "run", "notes.pt2", says=["not a model", "a text file"])
        (FOLDER / "noise.bin").write_bytes(bytes(range(1, 200)))
        self.fails(1, "run", "noise.bin", says=["unknown kind"])
        self.fails(1, "verify", "classifier.pt2", says=["a zip file", ".pt2"])
        (FOLDER / "plan.json").write_text("hello")
        done = self.fails(1, "autoquant", "classifier.pt2", "--plan", "plan.json", "-o", "x.ht", says=["plan.json: byte 1", "invalid literal"])
        self.assertNotIn("json.exception", done.stderr)

    def test_kind_is_told_by_content(self):
        shutil.copy(FOLDER / "counter.pt2", FOLDER / "counter_without_extension")
        self.ok("run", "counter_without_extension")

        self.ok("quantize", "classifier.pt2", "--scheme", "int8wo", "-o", "checkpoint.txt")
        self.ok("run", "checkpoint.txt")
        self.ok("inspect", "checkpoint.txt")
        shutil.copy(FOLDER / "checkpoint.txt", FOLDER / "misnamed.pt2")
        self.ok("run", "misnamed.pt2")

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
