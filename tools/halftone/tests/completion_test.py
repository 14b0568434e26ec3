"""Tests of halftone completion: what the shells themselves make of the scripts."""
import re
import shutil
import subprocess

from cli_support import FOLDER, CliTest, main


class Completion(CliTest):
    def bash(self, *words):
        """What bash offers for the last of the words."""
        (FOLDER / "halftone.bash").write_text(self.ok("completion", "bash").stdout)
        typed = " ".join(f"'{word}'" for word in ("halftone", *words))
        script = (f"source halftone.bash; COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _halftone halftone; "
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, cwd=FOLDER, timeout=60, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def commands(self):
        text = self.ok("--help").stdout.split("Subcommands:\n")[1].split("\n\n")[0]
        return re.findall(r"^  (\w+) ", text, re.MULTILINE)

    def test_bash_completes_every_command(self):
        commands = self.commands()
        self.assertGreater(len(commands), 14)
        self.assertEqual(self.bash("qu"), ["quantize"])
        self.assertEqual(self.bash("c"), ["chat", "compare", "completion"])
        self.assertEqual(set(self.bash("")), {*commands, "help", "--help", "--version"})
        self.assertEqual(self.bash("help", "tu"), ["tune"])

    def test_bash_completes_every_option_of_the_help(self):
        for command in self.commands():
            with self.subTest(command):
                wanted = set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", self.ok(command, "--help").stdout, re.MULTILINE))
                self.assertEqual(set(self.bash(command, "--")), wanted)

    def test_bash_completes_files(self):
        (FOLDER / "somewhere.pt2").write_bytes(b"")
        self.assertEqual(self.bash("run", "somew"), ["somewhere.pt2"])
        self.assertEqual(self.bash("quantize", "-"), [name for name in self.bash("quantize", "-") if name.startswith("-")])

    def test_other_shells_name_every_command_and_option(self):
        options = set(re.findall(r"^  (--[a-z-]+)", self.ok("run", "--help").stdout, re.MULTILINE))
        zsh, fish = (self.ok("completion", shell).stdout for shell in ("zsh", "fish"))
        for command in self.commands():
            self.assertIn(f"    '{command}:", zsh)
            self.assertIn(f" -a {command} ", fish)
        for option in options:
            self.assertIn(f"'*{option}[", zsh)
            self.assertIn(f"__fish_seen_subcommand_from run' -l {option[2:]}", fish)
        self.assertTrue(zsh.startswith("#compdef halftone\n"))

    def test_other_shells_accept_their_script(self):
        checked = 0
        for shell, options in (("bash", ["-n"]), ("zsh", ["-n"]), ("fish", ["--no-execute"])):
            if shutil.which(shell) is None:
                continue
            script = FOLDER / f"script.{shell}"
            script.write_text(self.ok("completion", shell).stdout)
            done = subprocess.run([shell, *options, str(script)], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            checked += 1
        self.assertGreaterEqual(checked, 1)

    def test_mistakes(self):
        self.fails(2, "completion", says=["SHELL"])
        self.fails(2, "completion", "tcsh", says=["tcsh", "known: bash, zsh, fish"])


if __name__ == "__main__":
    main()
