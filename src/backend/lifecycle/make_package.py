#!/usr/bin/env python3
"""Compiles the tests' model (test_support.h) to a package with AOTInductor: make_package.py FOLDER.

Writes small_model.pt2, or refused.txt with the reason where this machine cannot compile one. A package of this script
and this torch that is there already is kept.
"""
import pathlib
import sys
import traceback

import torch

SCRIPT = pathlib.Path(__file__).resolve()


def weight(*sizes):
    """Numbers that C++ makes in the same way, bit for bit."""
    count = torch.Size(sizes).numel()
    return ((torch.arange(count) * 37 % 101 - 50).float() / 500).reshape(sizes)


class SmallModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(64, 96)
        self.down = torch.nn.Linear(96, 64)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.copy_(weight(*parameter.shape))

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x)))


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    package, stamp, refused = folder / "small_model.pt2", folder / "made_by.txt", folder / "refused.txt"
    made_by = f"{torch.__version__} {SCRIPT.read_text(encoding='utf-8')}"
    if package.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == made_by:
        print(f"{package} is up to date")
        return
    refused.unlink(missing_ok=True)
    try:
        batch = torch.export.Dim("batch", min=1, max=1024)
        program = torch.export.export(SmallModel().eval(), (torch.randn(3, 64),), dynamic_shapes={"x": {0: batch}})
        torch._inductor.aoti_compile_and_package(program, package_path=str(package))
    except Exception as error:  # whatever AOTInductor says is the reason
        traceback.print_exc()
        refused.write_text(f"{type(error).__name__}: {error}\n", encoding="utf-8")
        return
    stamp.write_text(made_by, encoding="utf-8")
    print(f"{package}: {package.stat().st_size} bytes")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
