"""`python -m halftone …`: finds torch and starts the program. A wheel installs this file as the command `halftone` too.

Neither the package nor torch is imported by that command: it takes seconds.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys


def main() -> None:
    """Becomes the program, which finds torch's libraries where this Python has torch."""
    package, torch = (importlib.util.find_spec(name) for name in ("halftone", "torch"))
    program = pathlib.Path(package.submodule_search_locations[0], "bin/halftone") if package else pathlib.Path("bin/halftone")
    if not program.is_file():
        sys.exit("halftone: error: this copy of the package holds no program; `make wheel` makes one that does")
    if torch is not None and torch.submodule_search_locations:
        os.environ.setdefault("HALFTONE_TORCH_PREFIX", list(torch.submodule_search_locations)[0])
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
