"""scripts/lint in a small repository with stand-ins for the tools: which files clang-tidy gets, and what makes it fail."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ("src/base/a.cpp", "src/base/b.cpp", "src/base/b.h", "src/base/only.h", "tests/other_build.cpp")
COMPILED = ("src/base/a.cpp", "src/base/b.cpp", "src/base/new.cpp")
CHECKS = ("check_layers", "check_duplicates", "check_operator_names")
# clang-tidy-14 writes the file that it got into a list, and fails where BAD is in its name.
TOOLS = {
    "clang-format-14": "exit 0",
    "clang-tidy-14": 'for last; do :; done; echo "$last" >>"$SEEN"; case "$last" in *"${BAD:-nothing}"*) exit 1;; esac',
    "cmake": 'mkdir -p build-lint; cp "$COMMANDS" build-lint/compile_commands.json',
}


class Lint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.outside = pathlib.Path(folder.name) / "outside"
        self.repo = pathlib.Path(folder.name).resolve() / "repo"
        for tool, script in TOOLS.items():
            self.write(self.outside / tool, f"#!/bin/sh\n{script}\n").chmod(0o755)
        for name in SOURCES:
            self.write(self.repo / name, "int x;\n")
        for name in ("scripts", "bench", "tools", "examples"):
            (self.repo / name).mkdir(exist_ok=True)
        shutil.copy(ROOT / "scripts/lint", self.repo / "scripts/lint")
        for name in CHECKS:
            self.write(self.repo / f"scripts/{name}.py", "import os, sys\nsys.exit(os.environ.get('FAILING', '-') in sys.argv[0])\n")
        self.write(self.repo / ".gitignore", "build-*/\n")
        entries = ",".join(f'{{"file": "{self.repo / name}"}}' for name in COMPILED)
        self.write(self.outside / "commands.json", f"[{entries}]")
        self.env = {**os.environ, "PATH": f"{self.outside}:{os.environ['PATH']}", "SEEN": str(self.outside / "seen"),
                    "COMMANDS": str(self.outside / "commands.json"), "GIT_CONFIG_GLOBAL": "/dev/null"}
        self.git("init", "-q")
        self.commit("first")

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments], cwd=self.repo, env=self.env, check=True)

    def commit(self, subject):
        self.git("add", "-A")
        self.git("commit", "-qm", subject)

    def lint(self, *options, **env):
        seen = pathlib.Path(self.env["SEEN"])
        seen.unlink(missing_ok=True)
        done = subprocess.run(["bash", "scripts/lint", *options], cwd=self.repo, env={**self.env, **env}, capture_output=True, text=True)
        return done.returncode, sorted(seen.read_text().split()) if seen.exists() else [], done.stderr

    def test_what_changed_since_the_tag(self):
        self.git("tag", "v1")
        self.assertEqual(self.lint()[:2], (0, []))
        self.write(self.repo / "src/base/a.cpp", "int y;\n")
        self.commit("second")
        self.write(self.repo / "src/base/b.h", "int y;\n")  # checked through b.cpp
        self.write(self.repo / "src/base/only.h", "int y;\n")  # no source of its name
        self.write(self.repo / "src/base/new.cpp", "int z;\n")
        code, seen, said = self.lint()
        self.assertEqual((code, seen), (0, ["src/base/a.cpp", "src/base/b.cpp", "src/base/new.cpp"]), said)
        self.assertIn("since the tag v1", said)
        self.assertEqual(self.lint("--base", "HEAD")[1], ["src/base/b.cpp", "src/base/new.cpp"])

    def test_without_a_tag_from_fifty_commits_back(self):
        self.write(self.repo / "src/base/a.cpp", "int y;\n")
        self.commit("the one before the last 50")
        for i in range(49):
            self.git("commit", "-q", "--allow-empty", "-m", f"change {i}")
        self.write(self.repo / "src/base/b.cpp", "int y;\n")
        self.commit("the last one")
        code, seen, said = self.lint()
        self.assertEqual((code, seen), (0, ["src/base/b.cpp"]), said)
        self.assertIn("there is no tag", said)
        self.assertIn("the one before the last 50", said)

    def test_all_and_what_has_no_command(self):
        code, seen, said = self.lint("--all")
        self.assertEqual((code, seen), (0, ["src/base/a.cpp", "src/base/b.cpp"]), said)
        self.assertIn("tests/other_build.cpp", said)

    def test_a_finding_fails_and_the_others_run(self):
        code, seen, _ = self.lint("src/base/a.cpp", "src/base/b.cpp", BAD="a.cpp")
        self.assertEqual((code, seen), (1, ["src/base/a.cpp", "src/base/b.cpp"]))

    def test_fast_has_no_clang_tidy(self):
        self.write(self.repo / "src/base/a.cpp", "int y;\n")
        self.assertEqual(self.lint("--fast")[:2], (0, []))
        self.assertFalse((self.repo / "build-lint").exists())

    def test_every_check_can_fail(self):
        for name in CHECKS:
            self.assertEqual(self.lint("--fast", FAILING=name)[0], 1, name)

    def test_wrong_options(self):
        self.assertEqual(self.lint("--slow")[0], 2)
        self.assertEqual(self.lint("--base", "nowhere")[0], 1)


if __name__ == "__main__":
    unittest.main()
