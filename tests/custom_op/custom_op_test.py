#!/usr/bin/env python3
"""A model with a user's own operator: refused with a hint, and run once its library is given."""
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.ops.halftone_test.scale_plus_one(torch.relu(x), 2.5)


def main():
    halftone, library = sys.argv[1:]
    torch.ops.load_library(library)
    x = torch.randn(3, 4)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        torch.export.save(torch.export.export(Model(), (x,)), folder / "model.pt2")
        save_file({"x": x}, folder / "in.safetensors")
        command = [halftone, "run", folder / "model.pt2", "--inputs", folder / "in.safetensors", "--outputs", folder / "out.safetensors"]

        refused = subprocess.run(command, capture_output=True, text=True)
        assert refused.returncode == 1, refused
        assert "halftone_test" in refused.stderr and "--load-library" in refused.stderr, refused.stderr

        done = subprocess.run([*command, "--load-library", library], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert torch.equal(load_file(folder / "out.safetensors")["output_0"], Model()(x))

        broken = subprocess.run([*command, "--load-library", folder / "in.safetensors"], capture_output=True, text=True)
        assert broken.returncode == 1 and "in.safetensors" in broken.stderr, broken.stderr
    print("3 passed, 0 failed")


if __name__ == "__main__":
    main()
