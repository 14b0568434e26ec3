"""`python -m halftone …` and the command `halftone` of the wheel: finds torch and starts the program."""

from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    """Becomes the program, which finds torch's libraries where this Python has torch."""
    import importlib.util

    program = pathlib.Path(__file__).parent / "bin/halftone"
    if not program.is_file():
        sys.exit("halftone: error: this copy of the package holds no program; `make wheel` makes one that does")
    # torch is found and not imported: that takes seconds.
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.submodule_search_locations:
        os.environ.setdefault("HALFTONE_TORCH_PREFIX", list(torch.submodule_search_locations)[0])
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
