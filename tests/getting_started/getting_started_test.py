#!/usr/bin/env python3
"""Runs docs/getting_started.md as a newcomer would: in an empty folder, every command as it is written, with an installed copy
of this build first in PATH. Fails where a command fails, or prints something else than the page shows."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import page as pages

SKIPPED = "1. Install"  # what the test does itself, with this build


def environment(args, home):
    """As after the page's first section: ~/halftone/bin, then the Python, CMake and Ninja of this build. No caches of before."""
    own = [home / "halftone" / "bin", pathlib.Path(sys.executable).parent, pathlib.Path(args.cmake).parent,
           pathlib.Path(args.make_program).parent]
    path = ":".join([*map(str, dict.fromkeys(own)), "/usr/local/bin:/usr/bin:/bin"])
    kept = {name: os.environ[name] for name in ("OMP_WAIT_POLICY", "HALFTONE_BUSY", "LANG") if name in os.environ}
    return {**kept, "HOME": str(home), "PATH": path, "VIRTUAL_ENV": str(pathlib.Path(sys.executable).parents[1])}


def run_commands(step, folder, env):
    """What they print, both streams as they come. Stops at the first that fails."""
    output = ""
    for command in step.commands:
        started = time.monotonic()
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(f"{time.monotonic() - started:5.1f} s  {command}", flush=True)
        output += done.stdout
        if done.returncode != 0:
            sys.exit(f"{done.stdout}\nline {step.line}: exit code {done.returncode}: {command}")
    return output


def check_output(step, output):
    if step.expected is not None and not pages.output_pattern(step.expected).fullmatch(output):
        sys.exit(f"{output}\nline {step.line}: the output is not what the page shows. First line that is missing:\n"
                 f"{pages.difference(step.expected, output)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("page", "cmake", "build", "make-program"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    steps = pages.read_steps(pathlib.Path(args.page).read_text())
    assert any(step.section == SKIPPED for step in steps), f"the page has no section {SKIPPED}"
    with tempfile.TemporaryDirectory(prefix="halftone_getting_started_") as name:
        home = pathlib.Path(name)
        folder = home / "first_steps"
        folder.mkdir()
        subprocess.run([args.cmake, "--install", args.build, "--prefix", home / "halftone"], check=True, capture_output=True)
        env = environment(args, home)
        ran = 0
        for step in steps:
            if step.section == SKIPPED:
                continue
            if step.file:
                (folder / step.file).write_text(step.text)
            else:
                check_output(step, run_commands(step, folder, env))
                ran += len(step.commands)
    assert ran >= 10, f"only {ran} commands found in the page"
    print(f"{ran} passed, 0 failed")


if __name__ == "__main__":
    main()
