#!/usr/bin/env python3
"""An installed copy works where it is moved to, finds torch in each of the documented places, and says so where there is none."""
import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

from installed import bare_environment, binaries, call, folders_of_this_machine, mentions, runpath, without_python

ARGS = None
FOLDER = None  # with a blank in its name
PREFIX = None


def halftone(*arguments, env, cwd=None):
    return call(PREFIX / "bin" / "halftone", *arguments, env=env, cwd=cwd)


class Relocate(unittest.TestCase):
    def runs(self, env, program=None, cwd=None):
        golden = pathlib.Path(ARGS.source, "tests", "golden", "v2_graph_fp32.ht")
        done = call(program or PREFIX / "bin" / "halftone", "inspect", golden, env=env, cwd=cwd)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("Inputs", done.stdout)

    def refuses(self, env, *words):
        done = halftone("--version", env=env)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in ("halftone: error: ", *words):
            self.assertIn(word, done.stderr)

    def test_run_paths_are_relative_and_exist(self):
        self.assertEqual([path.name.split(".so")[0] for path in binaries(PREFIX)], ["libhalftone", "halftone"])
        for path in binaries(PREFIX):
            self.assertEqual(len(runpath(path)), 1, path)
            for folder in runpath(path):
                self.assertTrue(folder.startswith("$ORIGIN"), f"{path}: {folder}")
                self.assertTrue(pathlib.Path(folder.replace("$ORIGIN", str(path.parent))).is_dir(), f"{path}: {folder}")

    def test_no_file_names_folders_of_the_build(self):
        self.assertEqual(mentions(PREFIX, folders_of_this_machine(ARGS.source, ARGS.build, ARGS.torch))[:3], [])

    def test_torch_of_the_python_in_path(self):
        self.runs(bare_environment(FOLDER / "python"))

    def test_torch_of_the_virtual_environment(self):
        venv = FOLDER / "venv"
        bare_environment(python_of=FOLDER / "python")
        shutil.copytree(FOLDER / "python", venv / "bin")
        self.runs({**without_python(FOLDER / "venv_path"), "VIRTUAL_ENV": str(venv)})

    def test_torch_prefix_comes_first(self):
        elsewhere = FOLDER / "torch elsewhere"
        elsewhere.mkdir()
        (elsewhere / "lib").symlink_to(pathlib.Path(ARGS.torch, "lib"))
        path = without_python(FOLDER / "prefix_path")
        for prefix in (elsewhere, pathlib.Path(ARGS.torch).parent):  # torch, site-packages
            self.runs({**path, "HALFTONE_TORCH_PREFIX": str(prefix)})
        self.refuses(bare_environment(FOLDER / "python", HALFTONE_TORCH_PREFIX="/nowhere"),
                     "HALFTONE_TORCH_PREFIX: there is no /nowhere/lib/libtorch_cpu.so")

    def test_torch_beside_the_library(self):
        copy = FOLDER / "self-contained"
        shutil.copytree(PREFIX, copy, symlinks=True)
        for library in pathlib.Path(ARGS.torch, "lib").glob("*.so*"):
            (copy / "lib" / library.name).symlink_to(library)
        self.runs(without_python(FOLDER / "beside_path"), copy / "bin" / "halftone")

    def test_torch_of_the_library_path(self):
        self.runs({**without_python(FOLDER / "library_path"), "LD_LIBRARY_PATH": f"/nowhere::{ARGS.torch}/lib"})

    def test_a_link_to_the_program(self):
        link = FOLDER / "ht"
        link.symlink_to(PREFIX / "bin" / "halftone")
        self.runs(bare_environment(FOLDER / "python"), link)

    def test_a_folder_named_torch_is_not_torch(self):
        work = FOLDER / "work"
        (work / "torch" / "lib").mkdir(parents=True)
        (work / "torch" / "__init__.py").write_text("")
        self.runs(bare_environment(FOLDER / "python"), cwd=work)

    def test_no_torch(self):
        self.refuses(without_python(FOLDER / "empty_path"), "is not found", "pip install torch==", "HALFTONE_TORCH_PREFIX")

    def test_torch_of_another_version(self):
        for file, text in (("version.py", "__version__ = '1.99.0+cpu'\n"), ("build-version", "1.99.0+cpu\n")):
            other = FOLDER / f"other {file}"
            (other / "lib").mkdir(parents=True)
            (other / "lib" / "libtorch_cpu.so").write_text("")
            (other / file).write_text(text)
            self.refuses(bare_environment(HALFTONE_TORCH_PREFIX=str(other)), "is torch 1.99", "was built with torch ")

    def test_arguments_and_exit_code_are_handed_on(self):
        done = halftone("inspect", "no such file.pt2", env=bare_environment(FOLDER / "python"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such file.pt2", done.stderr)
        self.assertEqual(halftone("nonsense", env=bare_environment(FOLDER / "python")).returncode, 2)


def main():
    global ARGS, FOLDER, PREFIX
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("cmake", "build", "source", "torch"):
        parser.add_argument(f"--{name}", required=True)
    ARGS, rest = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="halftone relocate ") as name:
        FOLDER = pathlib.Path(name)
        done = call(ARGS.cmake, "--install", ARGS.build, "--prefix", FOLDER / "installed")
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        PREFIX = FOLDER / "moved"
        os.rename(FOLDER / "installed", PREFIX)
        unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
