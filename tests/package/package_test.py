#!/usr/bin/env python3
"""Makes the tarball and the Debian package, unpacks both without root, and uses what is in them with nothing else in reach
but the system's programs and a Python that has torch."""
import argparse
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

import torch
from safetensors.torch import load_file

from installed import bare_environment, binaries, call, folders_of_this_machine, mentions, runpath, without_python

ARGS = None
FOLDER = None
PREFIXES = {}  # "tgz" and "deb": what is /usr for a package

PROJECT = """cmake_minimum_required(VERSION 3.24)
project(Deploy LANGUAGES CXX)
find_package(Halftone REQUIRED)
add_executable(deploy deploy.cpp)
target_link_libraries(deploy Halftone::halftone)
"""


def must(*command, **options):
    done = call(*command, **options)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def version():
    text = pathlib.Path(ARGS.source, "CMakeLists.txt").read_text()
    return re.search(r"project\(Halftone VERSION (\S+)", text).group(1)


def files(prefix):
    return sorted(str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir())


def make_packages():
    """Sets PREFIXES."""
    packages = FOLDER / "packages"
    must(ARGS.cpack, "--config", pathlib.Path(ARGS.build, "CPackConfig.cmake"), "-B", packages, cwd=FOLDER)
    (tarball,) = packages.glob("*.tar.gz")
    must("tar", "-xzf", tarball, "-C", FOLDER)
    PREFIXES["tgz"] = FOLDER / "a place of its own"
    (FOLDER / tarball.name.removesuffix(".tar.gz")).rename(PREFIXES["tgz"])
    must("dpkg-deb", "-x", deb(), FOLDER / "root")
    PREFIXES["deb"] = FOLDER / "root" / "usr"


def deb():
    (path,) = (FOLDER / "packages").glob("*.deb")
    return path


class Package(unittest.TestCase):
    def test_both_hold_the_same_files(self):
        found = files(PREFIXES["tgz"])
        self.assertEqual(found, files(PREFIXES["deb"]))
        include = pathlib.Path(ARGS.source, "include")
        headers = sorted(path.relative_to(include).as_posix() for path in include.rglob("*.h"))
        self.assertEqual([name for name in found if name.startswith("include/")], [f"include/{name}" for name in headers])
        for name in ("bin/halftone", "libexec/halftone/halftone", "lib/libhalftone.so", f"lib/libhalftone.so.{version()}",
                     "lib/cmake/Halftone/HalftoneConfig.cmake", "share/doc/halftone/copyright"):
            self.assertIn(name, found)

    def test_inspect_and_run_a_golden_file(self):
        golden = pathlib.Path(ARGS.source, "tests", "golden")
        env = bare_environment(FOLDER / "python")
        for prefix in PREFIXES.values():
            program = prefix / "bin" / "halftone"
            self.assertEqual(must(program, "--version", env=env).split()[:2], ["halftone", version()])
            self.assertIn("int8_linear", must(program, "inspect", golden / "v2_backend_int8dq.ht", env=env))
            output = FOLDER / "out.safetensors"
            must(program, "run", golden / "v2_graph_fp32.ht", "--outputs", output, env=env)
            expected = load_file(golden / "v2_graph_fp32.expected.safetensors")["output"]
            torch.testing.assert_close(load_file(output)["output_0"], expected)
            output.unlink()

    def test_without_torch_one_line_says_what_to_do(self):
        for prefix in PREFIXES.values():
            shutil.rmtree(FOLDER / "path", ignore_errors=True)
            done = call(prefix / "bin" / "halftone", "--version", env=without_python(FOLDER / "path"))
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"\Ahalftone: error: torch \S+ is not found\. .*pip install torch==\S+, .*HALFTONE_TORCH_PREFIX.*\n\Z")

    def test_nothing_names_this_machine(self):
        folders = folders_of_this_machine(ARGS.source, ARGS.build, ARGS.torch, FOLDER)
        for prefix in PREFIXES.values():
            self.assertEqual(mentions(prefix, folders)[:3], [])
            self.assertEqual(len(binaries(prefix)), 2)
            for binary in binaries(prefix):
                for folder in runpath(binary):
                    self.assertTrue(folder.startswith("$ORIGIN"), f"{binary}: {folder}")

    def test_control_file(self):
        def field(name):
            return must("dpkg-deb", "-f", deb(), name).strip()
        self.assertEqual((field("Package"), field("Version")), ("halftone", version()))
        depends = {part.split()[0] for part in field("Depends").split(", ")}
        for wanted in (r"libc6", r"libgomp1", r"libssl3(t64)?", r"libstdc\+\+6", r"zlib1g"):
            self.assertTrue(any(re.fullmatch(wanted, name) for name in depends), f"{wanted}: {depends}")
        self.assertFalse([name for name in depends if "torch" in name], "torch is not a Debian package")
        self.assertIn("torch", field("Description"))
        self.assertRegex(field("Maintainer"), r"^.+ <\S+@\S+>$")

    def test_licences(self):
        for prefix in PREFIXES.values():
            text = (prefix / "share" / "doc" / "halftone" / "copyright").read_text()
            self.assertTrue(text.startswith("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"))
            own = pathlib.Path(ARGS.source, "LICENSE").read_text().split("\n\n", 2)
            self.assertIn(own[2].split("\n")[0], text)
            for name in ("Chart.js", "nlohmann-json", "fmt", "CLI11"):
                self.assertIn(name, text)

    def test_a_program_built_with_the_tarball(self):
        project, prefix = FOLDER / "deploy", PREFIXES["tgz"]
        project.mkdir()
        (project / "CMakeLists.txt").write_text(PROJECT)
        shutil.copy(pathlib.Path(ARGS.source, "examples", "deploy.cpp"), project)
        must(ARGS.cmake, "-S", project, "-B", project / "build", "-G", ARGS.generator, f"-DCMAKE_MAKE_PROGRAM={ARGS.make_program}",
             f"-DCMAKE_PREFIX_PATH={prefix};{ARGS.torch}/share/cmake", env=bare_environment(FOLDER / "python"))
        must(ARGS.cmake, "--build", project / "build", env=bare_environment(FOLDER / "python"))
        golden = pathlib.Path(ARGS.source, "tests", "golden", "v2_backend_int8dq.ht")
        self.assertEqual(must(project / "build" / "deploy", golden, env=bare_environment()).strip(), "[2, 8]")


def main():
    global ARGS, FOLDER
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("cmake", "cpack", "build", "source", "torch", "generator", "make-program"):
        parser.add_argument(f"--{name}", required=True)
    ARGS, rest = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="halftone_package_") as name:
        FOLDER = pathlib.Path(name)
        make_packages()
        unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
