"""What the tests of the command line share: models that this Python's torch exports, and calls of the program.

A test file is run as FILE_test.py HALFTONE [TEST…]; it calls export() for the models that it needs, and ends with main().
"""
import atexit
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import torch
from torch import nn

from many_calls import Calls

HALFTONE = str(pathlib.Path(sys.argv.pop(1)).resolve())
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="halftone_cli_"))
GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "tests/golden"
MAX_COLUMNS = 100
# Tests may run beside others: whether the machine is busy is looked at only where a test asks for it.
os.environ.setdefault("HALFTONE_BUSY", "ignore")
USUAL = Calls(HALFTONE, {**os.environ, "COLUMNS": str(MAX_COLUMNS)}, FOLDER)
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def read_ht(path):
    """The header of a .ht file as JSON, and what follows it."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def rewrite_ht(source, target, changes, patches=(), renamed=()):
    """A copy of a .ht file (version 2) with other metadata and right digests: what an attacker can write.

    `patches`: (tensor, offset, bytes), written over what the tensor holds. `renamed`: old and new names of tensors.
    """
    header, data = read_ht(source)
    begin = header["__halftone__.digests"]["data_offsets"][0]
    content = bytearray(data[:begin])
    for tensor, offset, new in patches:
        at = header[tensor]["data_offsets"][0] + offset
        content[at : at + len(new)] = new
    header["__metadata__"].update(changes)
    header = {dict(renamed).get(name, name): entry for name, entry in header.items()}
    rows, digests = 2, None
    while digests is None or len(digests) != rows:  # their number is in the header that they cover
        rows, end = len(digests) if digests else rows, begin + 32 * (len(digests) if digests else rows)
        header["__halftone__.digests"] = {"dtype": "U8", "shape": [rows, 32], "data_offsets": [begin, end]}
        header["__halftone__.sha256"] = {"dtype": "U8", "shape": [32], "data_offsets": [end, end + 32]}
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-(8 + len(text)) % 64)
        covered = len(text).to_bytes(8, "little") + text + bytes(content)
        digests = [hashlib.sha256(covered[i : i + 2**22]).digest() for i in range(0, len(covered), 2**22)]
        digests.append(hashlib.sha256(b"".join(digests)).digest())
    whole = covered + b"".join(digests)
    target.write_bytes(whole + hashlib.sha256(whole).digest())


class Classifier(nn.Module):
    """Every kind of layer that can be quantized, long layer names, a nested result with numbers, a string and None."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.a_rather_long_name_of_a_block = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
        self.convolution = nn.Conv1d(16, 8, 3, padding=1)

    def forward(self, ids, scale):
        x = self.a_rather_long_name_of_a_block(self.embedding(ids)) * scale
        y = self.convolution(x.transpose(1, 2))
        return {"features": x, "pair": (y, None), "answer": 42, "half": 0.5, "yes": True, "kind": "conv"}


class Block(nn.Module):
    """Only what has native kernels."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.up = nn.Linear(64, 256)
        self.down = nn.Linear(256, 64)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Counter(nn.Module):
    """Keeps state: the sum of what it saw."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.total.add_(x)
        return self.total * 1.0


class Writer(nn.Module):
    """Writes to its input."""

    def forward(self, x, y):
        x.add_(y)
        return x.sum()


class Twice(nn.Module):
    """The same operator of ATen in several layers."""

    class Layer(nn.Module):
        def forward(self, x, scale):
            return x.cumsum(0) * scale

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(self.Layer() for _ in range(4))

    def forward(self, x, scale):
        for layer in self.layers:
            x = layer(x, scale)
        return x


class Branch(nn.Module):
    """Control flow, which is not compiled."""

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))


class NotFinite(nn.Module):
    """Half of its result is NaN: logarithms of negative numbers."""

    def __init__(self):
        super().__init__()
        self.f = nn.Linear(64, 64)

    def forward(self, x):
        return torch.log(self.f(x))


class Drawing(nn.Module):
    """Draws random numbers."""

    def __init__(self):
        super().__init__()
        self.f = nn.Linear(64, 64)

    def forward(self, x):
        return self.f(x) + torch.randn_like(x)


class Custom(nn.Module):
    """An operator that no other library has."""

    def __init__(self):
        super().__init__()
        self.f = nn.Linear(8, 4)

    def forward(self, x):
        return torch.ops.halftone_cli_test.magic(self.f(x))


def classifier_inputs(batch=2):
    return {"ids": torch.arange(batch * 5).reshape(batch, 5) % 50, "scale": torch.tensor([1.5])}


@functools.cache
def classifier():
    """The module that classifier.pt2 was exported from."""
    torch.manual_seed(0)
    return Classifier().eval()


def export_classifier():
    shapes = {"ids": {0: torch.export.Dim("batch", min=1, max=32)}, "scale": None}
    with torch.no_grad():
        return torch.export.export(classifier(), tuple(classifier_inputs().values()), dynamic_shapes=shapes)


def export_block():
    torch.manual_seed(0)
    return torch.export.export(Block().eval(), (torch.randn(3, 70, 64),))


def export_small(module):
    torch.manual_seed(0)
    return torch.export.export(module().eval(), (torch.randn(8, 64),))


def export_custom():
    torch.library.define("halftone_cli_test::magic", "(Tensor x) -> Tensor")
    torch.library.impl("halftone_cli_test::magic", "cpu")(lambda x: x + 1)
    torch.library.register_fake("halftone_cli_test::magic")(torch.empty_like)
    batch = torch.export.Dim("batch", min=2, max=16)
    return torch.export.export(Custom().eval(), (torch.randn(2, 8),), dynamic_shapes={"x": {0: batch}})


def export_without_samples():
    program = torch.export.export(nn.Linear(4, 2), (torch.ones(1, 4),))
    program._example_inputs = None
    return program


EXPORTERS = {
    "classifier": export_classifier,
    "block": export_block,
    "twice": lambda: torch.export.export(Twice(), (torch.ones(3), torch.ones(1))),
    "branch": lambda: torch.export.export(Branch(), (torch.ones(3),)),
    "custom": export_custom,
    "counter": lambda: torch.export.export(Counter(), (torch.ones(3),)),
    "writer": lambda: torch.export.export(Writer(), (torch.ones(2), torch.ones(2))),
    "no_samples": export_without_samples,
    "not_finite": lambda: export_small(NotFinite),
    "drawing": lambda: export_small(Drawing),
}


def export(*names):
    """Writes NAME.pt2 into FOLDER, where the program runs."""
    for name in names:
        torch.export.save(EXPORTERS[name](), FOLDER / f"{name}.pt2")


def run(*arguments, env=None, **options):
    """On a page of MAX_COLUMNS, unless `env` says otherwise."""
    env = {**os.environ, "COLUMNS": str(MAX_COLUMNS)} if env is None else env
    if env == USUAL.environment and not options:
        return USUAL(*arguments)
    command = [HALFTONE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=FOLDER, timeout=120, env=env, **options)


# "1 calls", which every text of the program is searched for. "1x2 samples" and "0.1 models" are none.
NOUNS = ("buffer|byte|call|candidate|chunk|convolution|element|embedding|entrie|file|finding|group|kernel|layer|linear|measurement|"
         "model|node|note|operation|operator|output|parameter|pattern|problem|regression|repetition|result|round|row|sample|shape|"
         "step|tensor|thread|trial|tuning|weight")
WRONG_PLURAL = re.compile(rf"(?<![\w.,×/+-])1 (static int8 |matched |quantized |different )?({NOUNS})s\b")


class CliTest(unittest.TestCase):
    def check_words(self, done):
        for text in (done.stdout, done.stderr):
            found = WRONG_PLURAL.search(text)
            self.assertIsNone(found, found and text[max(found.start() - 60, 0):found.end() + 20])

    def ok(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_words(done)
        return done

    def fails(self, code, *arguments, says=(), **options):
        """Exit code, nothing on stdout, one paragraph on stderr that says why and carries no backtrace."""
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        self.check_words(done)
        self.assertTrue(done.stderr.startswith("halftone: error: "), done.stderr)
        self.assertNotIn("\n\n", done.stderr)
        for never in ("frame #", "Exception raised from", "terminate called", "c10::"):
            self.assertNotIn(never, done.stderr)
        for word in says:
            self.assertIn(word, done.stderr)
        return done

    def assert_narrow(self, text):
        for line in text.splitlines():
            self.assertLessEqual(len(line), MAX_COLUMNS, line)


def main():
    result = unittest.main(exit=False).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
