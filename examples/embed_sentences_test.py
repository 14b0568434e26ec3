#!/usr/bin/env python3
"""embed_sentences on the tiny model: the C++ module and the .pt2 file find the same sentences with the same cosines."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TINY_DIR = ROOT / "examples" / "tiny_bert"
TOLERANCE = 1e-5


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def check_side_by_side(program, folder):
    model = folder / "tiny.pt2"
    subprocess.run([sys.executable, ROOT / "scripts" / "export_minilm.py", "--tiny", "-o", model], check=True)
    done = run(program, "--model-dir", TINY_DIR, "--pt2", model)
    assert done.returncode == 0, done.stderr
    module = re.findall(r"^  C\+\+ module +(.*)$", done.stdout, re.MULTILINE)
    halftone = re.findall(r"^  Halftone +(.*)$", done.stdout, re.MULTILINE)
    assert len(module) == 3 and module == halftone, done.stdout
    difference = float(re.search(r"largest difference .*: (\S+)$", done.stdout, re.MULTILINE).group(1))
    assert difference <= TOLERANCE, f"the vectors differ by {difference}"


def check_refusals(program, folder):
    assert run(program).returncode == 2
    assert run(program, "--model-dir").returncode == 2
    assert run(program, "--unknown", "x").returncode == 2
    missing = run(program, "--model-dir", folder / "nothing")
    assert missing.returncode == 1 and "vocab.txt" in missing.stderr, missing
    broken = run(program, "--model-dir", TINY_DIR, "--pt2", TINY_DIR / "vocab.txt")
    assert broken.returncode == 1 and "vocab.txt" in broken.stderr, broken


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="embed_sentences")
    program = parser.parse_args().program
    with tempfile.TemporaryDirectory() as folder:
        check_refusals(program, pathlib.Path(folder))
        check_side_by_side(program, pathlib.Path(folder))


if __name__ == "__main__":
    main()
