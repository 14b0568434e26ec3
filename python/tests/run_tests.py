#!/usr/bin/env python3
"""run_tests.py PART BUILD: the pytest suite test_PART_*.py (or test_PART.py) on the package that BUILD has staged.

Exit code 77, which CTest calls skipped, where pytest is not there.
"""

import importlib.util
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main() -> int:
    part, build = sys.argv[1], pathlib.Path(sys.argv[2])
    if importlib.util.find_spec("pytest") is None:
        print("run_tests: skipped: no pytest here (scripts/setup test installs it)")
        return 77
    import pytest

    os.environ.setdefault("HALFTONE_BUILD", str(build))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    files = sorted(str(path) for path in HERE.glob(f"test_{part}*.py"))
    arguments = ["-q", "-p", "no:cacheprovider", "--durations=10", *files]
    if part == "api":
        # The examples in docstrings and in the guide, as they stand there.
        arguments += ["--doctest-modules", "--doctest-glob=*.md", "--doctest-continue-on-failure", *doctests(build)]
    if part == "dynamo":
        # The full run of op_db takes an hour: `pytest -m slow`.
        arguments += ["-m", "not slow", "--doctest-modules", "--doctest-glob=*.md", *dynamo_doctests(build)]
    return int(pytest.main([*arguments, *sys.argv[3:]]))


def doctests(build: pathlib.Path) -> list[str]:
    package = build / "python/halftone"
    files = [str(path) for path in sorted(package.glob("*.py")) if path.name != "__main__.py"]
    return [*files, str(HERE.parents[1] / "docs/python.md")]


def dynamo_doctests(build: pathlib.Path) -> list[str]:
    files = [str(path) for path in sorted((build / "python/halftone/dynamo").glob("*.py"))]
    return [*files, str(HERE.parents[1] / "docs/python_compile.md")]


if __name__ == "__main__":
    sys.exit(main())
