#!/usr/bin/env python3
"""Counts the operators that sources name by themselves ("aten::…" in a string), file by file.

    check_operator_names.py [--update]

What an operator is (a view, element-wise, a product, …) belongs into one table. A file that lists operators on its own
drifts from the others. Tests may name operators, and so may a file that names a single one (its overloads count as one).
scripts/operator_names.json lists `allowed`: patterns of files that may name any number, each with a reason; and `left`:
how many literals each other file has. More than that is an error, and so is fewer: --update lowers the numbers (it never
raises one), in the same commit.
"""
import argparse
import fnmatch
import json
import pathlib
import re
import sys

import check_duplicates

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = "scripts/operator_names.json"
TEST = re.compile(r"_test\.cpp$|(^|_|/)test_(support|models|kernels)\.h$|/cases/")


def names_in(text):
    """Every operator that a string literal of the text names at its start, with its overload."""
    literals = (token.text for token in check_duplicates.tokens(text) if token.kind == "literal")
    return [match.group(1) for match in (re.match(r'\w*"(aten::[^"]*)', literal) for literal in literals) if match]


def counts(root, allowed):
    """File -> number of literals, without tests, allowed files and those with one operator."""
    found = {}
    for folder in check_duplicates.FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in (".h", ".cpp") or TEST.search(name) or any(fnmatch.fnmatchcase(name, p) for p in allowed):
                continue
            names = names_in(path.read_text(encoding="utf-8"))
            if len({operator.split(".")[0] for operator in names}) > 1:
                found[name] = len(names)
    return found


def check(root, data):
    problems = [f"allowed: {entry['files']} has no reason" for entry in data["allowed"] if not entry.get("reason", "").strip()]
    found = counts(root, [entry["files"] for entry in data["allowed"]])
    left = data["left"]
    for name, count in found.items():
        if count > left.get(name, 0):
            problems.append(f"{name} names operators {count} times, {left.get(name, 0)} are allowed: ask the table of operator traits, "
                            f"or say in {DATA} why this file must name them")
    problems += [f"{name} names operators {found.get(name, 0)} times now, not {count}: run scripts/check_operator_names.py --update"
                 for name, count in left.items() if found.get(name, 0) < count]
    return problems, found


def lowered(left, found):
    return {name: min(count, found[name]) for name, count in sorted(left.items()) if name in found}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help=f"lower the numbers in {DATA}")
    args = parser.parse_args()
    data = json.loads((ROOT / DATA).read_text(encoding="utf-8"))
    problems, found = check(ROOT, data)
    if args.update:
        data["left"] = lowered(data["left"], found)
        (ROOT / DATA).write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        problems, found = check(ROOT, data)
        print(f"{sum(found.values())} literals in {len(found)} files")
    for problem in problems:
        print(f"check_operator_names: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
