#!/usr/bin/env python3
"""Checks the layer rule: which component may include which, and that the folders inside a component have an order too.

Reads the #include lines of src/, include/, tools/ and python/. The link lists of CMake say the same, but all components share one
include path, so that a header without a source could slip through there. Inside a component no list is kept: its folders may include
each other as they like, as long as there is no circle. A folder holds at most MAX_FILES files.
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
    "decoder": {"base", "archive", "text", "graph", "capture", "quant", "compiler"},
    "autograd": {"base", "graph", "capture"},
    "backend": {"base", "graph", "capture", "autograd", "quant", "compiler"},
    "checkpoint": {"base", "archive", "graph", "capture", "quant", "backend"},
    "compat": {"base", "archive", "cpu", "graph", "capture", "autograd", "quant", "compiler", "backend", "checkpoint", "tune"},
    "bench": {"base", "archive", "cpu", "graph", "capture", "autograd", "quant", "compiler", "backend", "checkpoint", "tune", "compat"},
    "tune": {"base", "archive", "cpu", "graph", "capture", "quant", "compiler", "backend", "checkpoint"},
}
TORCH_FREE = {"base", "archive", "text", "cpu", "kernels"}
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
MAX_FILES = 40  # sources and headers of one folder; its CMakeLists.txt does not count
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
    """tools/, python/ and include/ know the public headers only, the first two also their own folders."""
    for name in includes(path):
        if "/" in name and (root / "src" / name.split("/")[0]).is_dir():
            yield f"includes {name}: only include/halftone may be used here"


def is_for_tests(path):
    return "_test" in path.stem or path.stem.startswith("test_")


def folder_includes(root):
    """Folder -> the other folders that it includes, each with one of the lines. Code for tests may look anywhere."""
    found = {}
    for path in sources(root / "src") + sources(root / "tools"):
        if is_for_tests(path):
            continue
        for name in includes(path):
            base = root / "src" if (root / "src" / name).is_file() else root / "tools/halftone"
            target = (base / name).parent
            if (base / name).is_file() and "/" in name and target != path.parent:
                found.setdefault(path.parent, {}).setdefault(target, f"{path.relative_to(root)} includes {name}")
    return found


def circle(graph):
    """The folders of a circle, in order, or []. Depth first, without recursion."""
    done = set()
    for start in sorted(graph):
        path, pending = [], [(start, None)]
        while pending:
            folder, parent = pending.pop()
            while path and path[-1] != parent:
                done.add(path.pop())
            if folder in path:
                return path[path.index(folder):]
            if folder not in done:
                path.append(folder)
                pending += [(target, folder) for target in sorted(graph.get(folder, {}))]
    return []


def check_folders(root):
    for folder in sorted({path.parent for path in sources(root / "src") + sources(root / "tools")}):
        count = sum(1 for path in folder.iterdir() if path.suffix in SOURCES)
        if count > MAX_FILES:
            yield f"{folder.relative_to(root)}: {count} files, at most {MAX_FILES} are allowed: make folders of what belongs together"
    graph = folder_includes(root)
    folders = circle(graph)
    if folders:
        lines = [graph[here][there] for here, there in zip(folders, folders[1:] + folders[:1])]
        yield "folders include each other in a circle: " + "; ".join(lines)


def check(root=ROOT):
    with_torch = public_headers_with_torch(root)
    problems = []
    for folder in sorted(path for path in (root / "src").iterdir() if path.is_dir()):
        if folder.name not in MAY_USE:
            problems.append(f"src/{folder.name}: not in the list of components of scripts/check_layers.py")
            continue
        for path in sources(folder):
            problems += [f"{path.relative_to(root)}: {text}" for text in check_component(folder.name, path, with_torch, root)]
    for path in sources(root / "tools") + sources(root / "include") + sources(root / "python"):
        problems += [f"{path.relative_to(root)}: {text}" for text in check_outside(path, root)]
    return problems + list(check_folders(root))


def main():
    problems = check()
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"layers: {len(problems)} problem{'' if len(problems) == 1 else 's'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
