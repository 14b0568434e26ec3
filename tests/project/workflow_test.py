"""The CI workflow runs make targets and nothing else, and the targets exist.

The file is read line by line, since PyYAML may not be there: a step's command must stand on the line of its `run:`.
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALLOWED_ACTIONS = {"actions/checkout"}


def commands(workflow):
    """What each `run:` says, as text; a step whose command is on other lines gives `|` or `>`."""
    return [match[1].strip() for match in re.finditer(r"(?m)^\s*(?:-\s+)?run:(.*)$", workflow)]


def actions(workflow):
    return [match[1] for match in re.finditer(r"(?m)^\s*(?:-\s+)?uses:\s*([^@\s]+)", workflow)]


def targets(makefile):
    """The names before a colon at the beginning of a line; variables (:=, ?=) are none."""
    names = set()
    for match in re.finditer(r"(?m)^([a-z][a-z -]*):(?!=)", makefile):
        names.update(match[1].split())
    return names


def problems(workflow, makefile):
    known, found = targets(makefile), []
    for command in commands(workflow):
        match = re.fullmatch(r"make ([a-z-]+)", command)
        if not match:
            found.append(f"not a make target: run: {command}")
        elif match[1] not in known:
            found.append(f"no such target: {match[1]}")
    found += [f"not an allowed action: {name}" for name in actions(workflow) if name not in ALLOWED_ACTIONS]
    if re.search(r"(?m)^\s*(?:-\s+)?shell:", workflow):
        found.append("a step with a shell of its own")
    return found


class Workflow(unittest.TestCase):
    MAKEFILE = "BUILD ?= build\nall: build\n\nbuild: deps ## x\n\t@cmake: y\ntest test-long: export A = b\ntest: build\nX := y\n"

    def test_ours(self):
        workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
        self.assertEqual(problems(workflow, (ROOT / "Makefile").read_text(encoding="utf-8")), [])
        self.assertLessEqual({"make test", "make lint", "make docs"}, set(commands(workflow)))

    def test_all_workflows_are_looked_at(self):
        self.assertEqual([path.name for path in (ROOT / ".github/workflows").iterdir()], ["ci.yml"])

    def test_targets(self):
        self.assertEqual(targets(self.MAKEFILE), {"all", "build", "test", "test-long"})

    def test_what_is_refused(self):
        self.assertEqual(problems("      - run: make build\n      - uses: actions/checkout@v4\n", self.MAKEFILE), [])
        for line, wanted in (("      - run: make deploy", "no such target: deploy"),
                             ("        run: make test && curl x", "not a make target: run: make test && curl x"),
                             ("      - run: |\n          make test", "not a make target: run: |"),
                             ("      - run: make", "not a make target: run: make"),
                             ("      - uses: some/action@v1", "not an allowed action: some/action"),
                             ("        shell: python", "a step with a shell of its own")):
            self.assertEqual(problems(line + "\n", self.MAKEFILE), [wanted])


if __name__ == "__main__":
    unittest.main()
