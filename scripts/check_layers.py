#!/usr/bin/env python3
"""Checks the layer rule: which component may include which.

Reads the #include lines of src/, include/ and tools/. The link lists of CMake say the same, but all components share one
include path, so that a header without a source could slip through there.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Component -> components that it may include besides itself. A new component needs a line here.
MAY_USE = {
    "base": set(),
    "archive": {"base"},
    "text": {"base", "archive"},
    "cpu": {"base"},
    "kernels": {"base", "cpu"},
    "graph": {"base", "archive", "cpu"},
    "capture": {"base", "archive", "graph"},
    "quant": {"base", "cpu", "kernels", "graph"},
    "compiler": {"base", "cpu", "kernels", "graph", "quant"},
    "autograd": {"base", "graph", "capture"},
    "backend": {"base", "graph", "capture", "autograd", "quant", "compiler"},
    "checkpoint": {"base", "archive", "graph", "capture", "quant", "backend"},
    "compat": {"base", "archive", "cpu", "graph", "capture", "autograd", "quant", "compiler", "backend", "checkpoint", "tune"},
    "bench": {"base", "archive", "cpu", "graph", "capture", "autograd", "quant", "compiler", "backend", "checkpoint", "tune", "compat"},
    "tune": {"base", "archive", "cpu", "graph", "capture", "quant", "compiler", "backend", "checkpoint"},
}
TORCH_FREE = {"base", "archive", "text", "cpu", "kernels"}
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
SOURCES = {".h", ".cpp", ".inc"}


def includes(path):
    return [name for _, name in INCLUDE.findall(path.read_text(encoding="utf-8"))]


def public_headers_with_torch(root):
    """Names ("halftone/graph/graph.h") of the public headers that include torch, directly or through each other."""
    folder = root / "include"
    wanted = {path.relative_to(folder).as_posix(): includes(path) for path in (folder / "halftone").rglob("*.h")}
    found = {name for name, lines in wanted.items() if any(TORCH.match(line) for line in lines)}
    while True:
        more = {name for name, lines in wanted.items() if name not in found and found & set(lines)}
        if not more:
            return found
        found |= more


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCES) if folder.is_dir() else []


def check_component(component, path, with_torch, root):
    for name in includes(path):
        target = name.split("/")[0]
        is_component = (root / "src" / target).is_dir() and "/" in name
        if is_component and target != component and target not in MAY_USE[component]:
            allowed = ", ".join(sorted(MAY_USE[component])) or "no other component"
            yield f"includes {name}: {component} may use only {allowed}"
        if component in TORCH_FREE and (TORCH.match(name) or name in with_torch):
            yield f"includes {name}: {component} must not know torch"


def check_outside(path, root):
    """tools/ and include/ know the public headers only, tools/ also its own folder."""
    for name in includes(path):
        if "/" in name and (root / "src" / name.split("/")[0]).is_dir():
            yield f"includes {name}: only include/halftone may be used here"


def check(root=ROOT):
    with_torch = public_headers_with_torch(root)
    problems = []
    for folder in sorted(path for path in (root / "src").iterdir() if path.is_dir()):
        if folder.name not in MAY_USE:
            problems.append(f"src/{folder.name}: not in the list of components of scripts/check_layers.py")
            continue
        for path in sources(folder):
            problems += [f"{path.relative_to(root)}: {text}" for text in check_component(folder.name, path, with_torch, root)]
    for path in sources(root / "tools") + sources(root / "include"):
        problems += [f"{path.relative_to(root)}: {text}" for text in check_outside(path, root)]
    return problems


def main():
    problems = check()
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"layers: {len(problems)} problem{'' if len(problems) == 1 else 's'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
