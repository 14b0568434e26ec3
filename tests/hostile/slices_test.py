"""Slices of hostile_files add up: slices_test.py HOSTILE_FILES PT2_FOLDER."""
import pathlib
import subprocess
import sys
import tempfile

PROGRAM, SEEDS = sys.argv[1:]
TRIALS = 2600  # more than two batches
# When it was tried, and how long it took.
OWN = ("first", "next", "seconds")


def tally(folder, name, *options):
    path = folder / name
    done = subprocess.run([PROGRAM, "--pt2", SEEDS, "--tally", path, *map(str, options)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return path


def content(*paths):
    """Counts added up, kinds united."""
    counts, kinds = {}, set()
    for line in (line for path in paths for line in path.read_text().splitlines()):
        key, _, value = line.partition("\t")
        if key in OWN:
            continue
        if value.isdigit():
            counts[key] = counts.get(key, 0) + int(value)
        else:
            kinds.add(line)
    return counts, kinds


with tempfile.TemporaryDirectory(prefix="halftone_slices_") as name:
    folder = pathlib.Path(name)
    whole = tally(folder, "whole", "--first", 1, "--trials", TRIALS, "--jobs", 2)
    halves = [tally(folder, "a", "--first", 1, "--trials", 1100), tally(folder, "b", "--first", 1101, "--trials", TRIALS - 1100)]
    assert content(whole)[0]["trials"] == TRIALS
    assert content(*halves) == content(whole), (content(*halves), content(whole))
    report = subprocess.run([PROGRAM, "--sum", *halves], capture_output=True, text=True)
    assert report.stdout.startswith(f"{TRIALS} files in "), report.stdout + report.stderr
    assert report.stdout.endswith(f"{TRIALS} passed, 0 failed\n"), report.stdout
    # As if it had been cut off: some batches are done, the rest follows.
    part = tally(folder, "part", "--first", 1, "--trials", TRIALS, "--seconds", 0.2)
    assert content(part)[0]["trials"] < TRIALS
    tally(folder, "part", "--first", 1, "--trials", TRIALS, "--resume")
    assert content(part) == content(whole), (content(part), content(whole))
    wrong = subprocess.run([PROGRAM, "--pt2", SEEDS, "--tally", part, "--resume", "--first", "2"], capture_output=True, text=True)
    assert wrong.returncode == 1 and "give the same --first" in wrong.stderr, wrong.stderr
print("4 passed, 0 failed")
