"""What the tests of installed copies and of packages share: a bare environment, and a look into binaries."""
import os
import pathlib
import re
import subprocess
import sys

SYSTEM_PATH = "/usr/bin:/bin"


def bare_environment(python_of=None, **more):
    """Nothing but a PATH: the system's, and before it a folder with this Python where that is asked for."""
    if python_of:
        python_of.mkdir(exist_ok=True)
        for name in ("python", "python3"):
            program = python_of / name
            if not program.exists():  # a script: a link would hide that this Python belongs to a virtual environment
                program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
                program.chmod(0o755)
    return {"PATH": f"{python_of}:{SYSTEM_PATH}" if python_of else SYSTEM_PATH, **more}


def without_python(folder):
    """A PATH with what the launcher needs, and no Python: whatever Python the machine has might have torch."""
    folder.mkdir()
    for name in ("sh", "sed", "readlink"):
        (folder / name).symlink_to(pathlib.Path("/usr/bin", name) if pathlib.Path("/usr/bin", name).exists() else f"/bin/{name}")
    return {"PATH": str(folder)}


def call(*command, env=None, cwd=None):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, env=env, cwd=cwd)


def runpath(binary):
    """The folders of RUNPATH and RPATH."""
    done = call("readelf", "-d", binary)
    assert done.returncode == 0, done.stderr
    return [folder for path in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", done.stdout) for folder in path.split(":")]


def binaries(prefix):
    return [path for path in sorted(prefix.rglob("*")) if path.is_file() and not path.is_symlink() and is_elf(path)]


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def folders_of_this_machine(*folders):
    """What must be in no installed file, as given and without links."""
    return sorted({spelling for folder in folders for spelling in (str(folder), os.path.realpath(folder))})


def mentions(prefix, folders):
    """What files below prefix say of these folders: (file, text around it)."""
    start = re.compile(rb"(?<![\w.$/-])")  # where a path begins: /src is not in "…/torch/src"
    pattern = re.compile(b"(?:" + b"|".join(re.escape(folder.encode()) for folder in folders) + b")/")
    found = []
    for path in sorted(prefix.rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        data = path.read_bytes()
        for match in pattern.finditer(data):
            if start.match(data, match.start()):
                found.append((str(path.relative_to(prefix)), data[max(match.start() - 40, 0):match.end() + 80]))
    return found
