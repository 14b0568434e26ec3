#!/usr/bin/env python3
"""embed_sentences on the tiny model: the C++ module and the .pt2 file find the same sentences with the same cosines, and
so does a tuned .ht file, nearly."""
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
    return model, [line.split(maxsplit=1) for line in module]


def check_tuned(program, halftone, model, expected):
    tuned = model.with_suffix(".ht")
    subprocess.run([halftone, "tune", model, "--strategy", "one", "--candidate", "int8wo", "--time-limit", "5", "--no-cache",
                    "-o", tuned], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    done = run(program, "--model-dir", TINY_DIR, "--ht", tuned)
    assert done.returncode == 0, done.stderr
    found = [line.split(maxsplit=1) for line in re.findall(r"^  tuned +(.*)$", done.stdout, re.MULTILINE)]
    assert len(found) == 3, done.stdout
    for (cosine, sentence), (wanted, same) in zip(found, expected):
        assert sentence == same and abs(float(cosine) - float(wanted)) < 0.01, done.stdout


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
    parser.add_argument("halftone", help="the halftone program")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check_refusals(args.program, pathlib.Path(folder))
        model, found = check_side_by_side(args.program, pathlib.Path(folder))
        check_tuned(args.program, args.halftone, model, found)


if __name__ == "__main__":
    main()
