"""The check that keeps another torch out: its classes have other layouts, and a crash would be the best case."""

from __future__ import annotations

import pathlib


def built_with() -> str:
    """The torch that this copy was built with, "2.13.0"; "" where that is not known (a build folder)."""
    path = pathlib.Path(__file__).with_name("torch_version.txt")
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def minor(version: str) -> str:
    """The part that must be the same.

    >>> minor("2.13.0+cpu")
    '2.13'
    """
    return ".".join(version.split("+")[0].split(".")[:2])


def check_torch() -> None:
    """ImportError, one line, unless the torch here has the minor version that this was built with."""
    wanted = built_with()
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(f"halftone needs torch {wanted}, and there is none: pip install 'torch=={minor(wanted)}.*'") from None
    if wanted and minor(torch.__version__) != minor(wanted):
        raise ImportError(
            f"this halftone was built for torch {minor(wanted)}, and this is torch {torch.__version__}: "
            f"pip install 'torch=={minor(wanted)}.*', or a wheel of halftone for torch {minor(torch.__version__)}"
        )
