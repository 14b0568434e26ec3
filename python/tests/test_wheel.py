"""The wheel: what is in it, that it works in an empty environment with torch alone and no compiler, and refuses another torch."""

import csv
import io
import os
import pathlib
import subprocess
import sys
import venv
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What torch itself imports; nothing else is to be seen in the empty environment.
WITH_TORCH = (
    "torch", "torchgen", "functorch", "sympy", "mpmath", "isympy.py", "typing_extensions.py", "filelock", "fsspec", "jinja2", "networkx",
    "markupsafe",
)  # fmt: skip
PROGRAM = """
import shutil, sys, torch, halftone
assert shutil.which("g++") is None and shutil.which("cc") is None
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).eval()
x = torch.randn(4, 64)
expected = model(x)
graph = halftone.export(model, [x, x[:2]])
assert torch.allclose(graph(x), expected, atol=1e-5)
halftone.quantize_(graph, "int8wo")
graph.save(sys.argv[1])
halftone.quantize_(model, "int8wo")
assert torch.allclose(halftone.load(sys.argv[1])(x), model(x), atol=1e-4)
print(halftone.__version__, halftone.__file__)
"""


def run(*command, **options):
    # Not where the tests are started: there may be a folder called halftone, which Python would import.
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=240, **{"cwd": "/", **options})


def checked(*command, **options):
    done = run(*command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel():
    return pathlib.Path(checked(sys.executable, ROOT / "scripts/make_wheel", os.environ["HALFTONE_BUILD"]).strip())


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A virtual environment with the wheel, and links to torch and what it imports."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv/bin/python"
    checked(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel)
    links = folder / "only_torch"
    links.mkdir()
    import torch

    there = pathlib.Path(torch.__file__).parents[1]
    for name in WITH_TORCH:
        if (there / name).exists():
            (links / name).symlink_to(there / name)
    site = next((folder / "venv/lib").glob("python3*/site-packages"))
    (site / "only_torch.pth").write_text(f"{links}\n")
    return python


@pytest.fixture
def bare():
    """No compiler on the path, nothing of this environment."""
    return {"PATH": "/nonexistent", "HOME": os.environ.get("HOME", "/"), "OMP_NUM_THREADS": "1"}


class TestContent:
    def test_size_and_files(self, wheel):
        assert wheel.stat().st_size < 40e6
        names = zipfile.ZipFile(wheel).namelist()
        for wanted in (
            "__init__.py", "_C.pyi", "py.typed", "bin/halftone", "include/halftone/halftone.h", "lib/cmake/Halftone/HalftoneConfig.cmake",
            "lib/libhalftone.so.0",
        ):  # fmt: skip
            assert f"halftone/{wanted}" in names, wanted
        assert sum(name.startswith("halftone/_C.") and name.endswith(".so") for name in names) == 1
        assert not [name for name in names if "__pycache__" in name or name.endswith((".a", ".o"))]

    def test_record_holds_every_file(self, wheel):
        import base64
        import hashlib

        archive = zipfile.ZipFile(wheel)
        record = next(name for name in archive.namelist() if name.endswith("/RECORD"))
        rows = {name: digest for name, digest, _ in csv.reader(io.StringIO(archive.read(record).decode()))}
        assert rows.keys() == set(archive.namelist())
        for name, digest in rows.items():
            if name != record:
                content = hashlib.sha256(archive.read(name)).digest()
                assert digest == "sha256=" + base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    def test_requires_this_torch(self, wheel):
        import torch

        archive = zipfile.ZipFile(wheel)
        metadata = archive.read(next(name for name in archive.namelist() if name.endswith("/METADATA"))).decode()
        minor = ".".join(torch.__version__.split(".")[:2])
        assert f"Requires-Dist: torch=={minor}.*\n" in metadata and f"+torch{minor}-" in wheel.name

    def test_same_bytes_again(self, wheel):
        before = wheel.read_bytes()
        checked(sys.executable, ROOT / "scripts/make_wheel", os.environ["HALFTONE_BUILD"])
        assert wheel.read_bytes() == before

    def test_no_path_of_this_machine(self, wheel):
        archive = zipfile.ZipFile(wheel)
        folder = str(pathlib.Path(os.environ["HALFTONE_BUILD"]).resolve()).encode()
        assert [name for name in archive.namelist() if folder in archive.read(name)] == []


class TestInstalled:
    def test_works_without_a_compiler(self, environment, bare, tmp_path):
        out = checked(environment, "-c", PROGRAM, tmp_path / "model.ht", env=bare, cwd=tmp_path)
        assert "site-packages/halftone/__init__.py" in out

    def test_importing_does_not_import_dynamo(self, environment, bare):
        script = "import sys, torch; before = 'torch._dynamo' in sys.modules; import halftone; print('torch._dynamo' in sys.modules and not before)"
        assert checked(environment, "-c", script, env=bare) == "False\n"

    def test_torch_compile_finds_the_backend(self, environment, bare):
        script = (
            "import torch\nmodel = torch.nn.Sequential(torch.nn.Linear(64, 8)).eval()\nx = torch.ones(2, 64)\n"
            "with torch.no_grad():\n    print(torch.allclose(torch.compile(model, backend='halftone')(x), model(x), atol=1e-5))"
        )
        assert checked(environment, "-c", script, env=bare) == "True\n"

    def test_the_program(self, environment, bare):
        import halftone

        bare["PATH"] = "/usr/bin:/bin"
        assert halftone.__version__ in checked(environment.parent / "halftone", "--version", env=bare)
        assert "int8dq" in checked(environment, "-m", "halftone", "schemes", env=bare)

    def test_cmake_finds_it(self, environment, bare, tmp_path):
        cmake = pathlib.Path(sys.executable).parent / "cmake"
        if not cmake.exists():
            pytest.skip("no cmake beside this Python")
        prefix = checked(environment, "-c", "import halftone; print(halftone.cmake_prefix_path)", env=bare).strip()
        import torch

        (tmp_path / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.24)\nproject(x CXX)\nfind_package(Halftone REQUIRED)\n"
            "get_target_property(file Halftone::halftone IMPORTED_LOCATION)\nif(NOT EXISTS ${file})\n  message(FATAL_ERROR ${file})\nendif()\n"
        )
        torch_folder = pathlib.Path(torch.__file__).parent
        checked(cmake, "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DHALFTONE_TORCH_PREFIX={torch_folder}")

    def test_another_torch_is_one_clear_line(self, environment, bare, tmp_path):
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch/__init__.py").write_text('__version__ = "2.99.1"\n')
        done = run(environment, "-c", "import halftone", env=bare | {"PYTHONPATH": str(tmp_path)})
        last = done.stderr.strip().splitlines()[-1]
        assert done.returncode == 1 and last.startswith("ImportError: this halftone was built for torch 2.")
        assert "this is torch 2.99.1: pip install 'torch==2." in last

    def test_no_torch_is_one_clear_line(self, environment, bare):
        script = "import sys; sys.path = [p for p in sys.path if 'only_torch' not in p]; import halftone"
        done = run(environment, "-c", script, env=bare)
        last = done.stderr.strip().splitlines()[-1]
        assert done.returncode == 1 and last.startswith("ImportError: halftone needs torch 2.") and "pip install" in last
