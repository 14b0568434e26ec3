#!/usr/bin/env python3
"""Installs Halftone into a fresh folder, builds the README's C++ programs against it with find_package, and runs them."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import torch

PROJECT = """cmake_minimum_required(VERSION 3.24)
project(ReadmeExample LANGUAGES CXX)
find_package(Halftone REQUIRED)
foreach(name example deploy)
  add_executable(${name} ${name}.cpp)
  target_link_libraries(${name} Halftone::halftone)
endforeach()
"""


def readme_programs(readme):
    """The first program is the tour, the second one is examples/deploy.cpp."""
    blocks = re.findall(r"```cpp\n(.*?)```", readme, flags=re.DOTALL)
    assert len(blocks) == 2, f"README.md should hold two programs, has {len(blocks)}"
    return blocks


def check_deploy(source, program):
    assert program == pathlib.Path(source, "examples", "deploy.cpp").read_text(), "README.md is not examples/deploy.cpp"
    lines = [line for line in program.splitlines() if line.strip()]
    assert len(lines) == 10, f"README.md says ten lines, they are {len(lines)}"


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}\n0 passed, 1 failed")
    return done.stdout


def export_model(path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).eval()
    torch.export.save(torch.export.export(model, (torch.randn(5, 4),)), path)


def configure(args, folder, prefix, *more):
    return [args.cmake, "-S", folder, "-B", folder / "build", "-G", args.generator,
            f"-DCMAKE_MAKE_PROGRAM={args.make_program}", f"-DCMAKE_PREFIX_PATH={prefix}", *more]


def fake_torch(folder, version):
    """What our CMake files look at: a header with the version, and a lib folder."""
    headers = folder / "include" / "torch" / "csrc" / "api" / "include" / "torch"
    headers.mkdir(parents=True)
    (folder / "lib").mkdir()
    names = zip(("MAJOR", "MINOR", "PATCH"), version.split("."))
    (headers / "version.h").write_text("".join(f"#define TORCH_VERSION_{name} {number}\n" for name, number in names))
    return folder


def refusal(args, source, build, *options, environment=None):
    """What CMake prints where it must not accept the torch it is given, as one line."""
    command = [args.cmake, "-S", source, "-B", build, "-G", args.generator, f"-DCMAKE_MAKE_PROGRAM={args.make_program}", *options]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          env={**os.environ, **(environment or {})})
    assert done.returncode != 0, f"accepted: {options} {environment}"
    return " ".join(done.stderr.split())


def check_torch_is_asked_for_exactly(args, folder, prefix):
    """A torch of another version must stop the configuration with a message that says so, however it is given."""
    fake = fake_torch(folder / "fake-torch", "2.12.1")
    wanted = f"built with torch {args.torch_version} and needs it exactly; found 2.12.1 in {fake}."
    ways = {"prefix": [f"-DHALFTONE_TORCH_PREFIX={fake}"], "dir": [f"-DTorch_DIR={fake}/share/cmake/Torch"],
            "path": [f"-DCMAKE_PREFIX_PATH={prefix};{fake}/share/cmake"]}
    (fake / "share" / "cmake" / "Torch").mkdir(parents=True)
    for name, options in ways.items():
        words = refusal(args, folder, folder / f"build-{name}", f"-DHalftone_ROOT={prefix}", *options)
        assert wanted in words, words
    words = refusal(args, folder, folder / "build-variable", f"-DHalftone_ROOT={prefix}",
                    environment={"HALFTONE_TORCH_PREFIX": str(fake)})
    assert wanted in words, words
    words = refusal(args, folder, folder / "build-nothing", f"-DHalftone_ROOT={prefix}", f"-DHALFTONE_TORCH_PREFIX={folder}")
    assert f"HALFTONE_TORCH_PREFIX={folder} has no torch" in words, words


def check_what_builds(args, folder):
    """Halftone itself says with which versions it builds."""
    for version in ("2.12.1", "2.16.0"):
        fake = fake_torch(folder / f"torch-{version}", version)
        words = refusal(args, args.source, folder / f"own-{version}", f"-DHALFTONE_TORCH_PREFIX={fake}",
                        f"-DPython3_EXECUTABLE={sys.executable}")
        assert f"builds with torch 2.13 to 2.15; found {version} in {fake}." in words, words


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("cmake", "build", "source", "torch", "torch-version", "generator", "make-program"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    readme = pathlib.Path(args.source, "README.md").read_text()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prefix = folder / "prefix"
        run(args.cmake, "--install", args.build, "--prefix", folder / "installed")
        (folder / "installed").rename(prefix)  # nothing may depend on the folder that it was installed to
        headers = sorted(p.relative_to(prefix).as_posix() for p in (prefix / "include" / "halftone").rglob("*.h"))
        source = pathlib.Path(args.source)
        assert headers == sorted(p.relative_to(source).as_posix() for p in (source / "include" / "halftone").rglob("*.h")), headers
        assert (prefix / "lib" / "libhalftone.so").exists() or list(prefix.glob("lib*/**/libhalftone.so"))
        (folder / "CMakeLists.txt").write_text(PROJECT)
        example, deploy = readme_programs(readme)
        check_deploy(args.source, deploy)
        (folder / "example.cpp").write_text(example)
        (folder / "deploy.cpp").write_text(deploy)
        export_model(folder / "model.pt2")
        check_torch_is_asked_for_exactly(args, folder, prefix)
        check_what_builds(args, folder)
        run(*configure(args, folder, prefix, f"-DHALFTONE_TORCH_PREFIX={args.torch}"))
        run(args.cmake, "--build", folder / "build")
        output = run(folder / "build" / "example", folder / "model.pt2")
        assert output.strip() == "[5, 3]", output
        golden = pathlib.Path(args.source, "tests", "golden", "v2_backend_int8dq.ht")
        assert run(folder / "build" / "deploy", golden).strip() == "[2, 8]"
        missing = subprocess.run([folder / "build" / "example", folder / "none.pt2"], capture_output=True, text=True)
        assert missing.returncode == 1 and missing.stderr.startswith("not found: "), missing.stderr
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
