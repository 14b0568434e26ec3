"""Compares our readers and our safetensors writer with torch.save and the safetensors package, on the same files.

Usage: oracle_test.py PATH_OF_archive_dump
"""

import collections
import hashlib
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

import safetensors
import safetensors.torch
import torch

DUMP = None  # set by main

SAFETENSORS_NAMES = {
    torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16", torch.int32: "I32",
    torch.int64: "I64", torch.uint16: "U16", torch.uint32: "U32", torch.uint64: "U64", torch.float16: "F16",
    torch.bfloat16: "BF16", torch.float32: "F32", torch.float64: "F64", torch.complex64: "C64",
    torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2",
}  # fmt: skip


def dump(*arguments):
    done = subprocess.run([DUMP, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"archive_dump {arguments} failed: {done.stderr}")
    return json.loads(done.stdout)


def failure(*arguments):
    done = subprocess.run([DUMP, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    return done.stderr


def raw(tensor):
    """Row-major bytes of any tensor, of any element type."""
    flat = tensor.detach().resolve_conj().contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy()) if flat.numel() else b""


def digest(data):
    return hashlib.sha256(data).hexdigest()


def random_tensor(dtype, *shape):
    size = 1
    for n in shape:
        size *= n
    if dtype == torch.bool:
        return torch.rand(shape) > 0.5
    width = torch.empty(0, dtype=dtype).element_size()
    data = torch.randint(0, 256, (size * width,), dtype=torch.uint8)
    return data.view(dtype).reshape(shape) if size else torch.empty(shape, dtype=dtype)


def describe(value):
    """What archive_dump should print for a Python value."""
    if value is None:
        return {"none": True}
    if isinstance(value, torch.dtype):
        return {"str": str(value)}
    if isinstance(value, torch.device):
        return {"str": str(value)}
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    if isinstance(value, float):
        return {"float": value}
    if isinstance(value, str):
        return {"str": value}
    if isinstance(value, torch.Tensor):
        return {"tensor": str(value.dtype).removeprefix("torch."), "sizes": list(value.shape),
                "strides": list(value.stride()), "sha256": digest(raw(value))}  # fmt: skip
    if isinstance(value, tuple):
        return {"tuple": [describe(item) for item in value]}
    if isinstance(value, list):
        return {"list": [describe(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[describe(k), describe(v)] for k, v in value.items()]}
    raise AssertionError(f"no description for {type(value)}")


def parse_floats(value):
    """Floats travel as text, because JSON has no infinity."""
    if isinstance(value, dict):
        return {k: float(v) if k == "float" else parse_floats(v) for k, v in value.items()}
    return [parse_floats(v) for v in value] if isinstance(value, list) else value


class Oracle(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)


class Safetensors(Oracle):
    def tensors(self):
        named = {f"block.{i}.{dtype}": random_tensor(dtype, *shape)
                 for i, (dtype, shape) in enumerate(
                     (dtype, shape) for dtype in SAFETENSORS_NAMES for shape in [(3, 5), (), (0, 4), (7,)])}
        named['quote " backslash \\ newline \n slash / ünïcode 漢字 \x01'] = torch.ones(2)
        return named  # fmt: skip

    def expected(self, tensors):
        return {name: {"dtype": SAFETENSORS_NAMES[t.dtype], "shape": list(t.shape), "sha256": digest(raw(t))}
                for name, t in tensors.items()}  # fmt: skip

    def test_reads_what_python_writes(self):
        tensors = self.tensors()
        metadata = {"format": "pt", "note": "tab\t, quote \" and 漢字"}
        safetensors.torch.save_file(tensors, self.path("a.safetensors"), metadata)
        got = dump("safetensors", self.path("a.safetensors"))
        self.assertEqual(got["tensors"], self.expected(tensors))
        self.assertEqual(got["metadata"], metadata)

    def test_python_reads_what_we_write(self):
        tensors = self.tensors()
        safetensors.torch.save_file(tensors, self.path("a.safetensors"), {"k": "v", "a": "b"})
        dump("rewrite", self.path("a.safetensors"), self.path("b.safetensors"))
        loaded = safetensors.torch.load_file(self.path("b.safetensors"))
        self.assertEqual(set(loaded), set(tensors))
        for name, tensor in tensors.items():
            self.assertEqual(loaded[name].dtype, tensor.dtype, name)
            self.assertEqual(loaded[name].shape, tensor.shape, name)
            self.assertEqual(raw(loaded[name]), raw(tensor), name)
        with safetensors.safe_open(self.path("b.safetensors"), "pt") as opened:
            self.assertEqual(opened.metadata(), {"k": "v", "a": "b"})

    def test_equal_tensors_give_the_bytes_python_gives(self):
        # With two metadata keys Python's order is random, so one is compared.
        for metadata in [None, {"format": "pt"}]:
            safetensors.torch.save_file(self.tensors(), self.path("a.safetensors"), metadata)
            dump("rewrite", self.path("a.safetensors"), self.path("b.safetensors"))
            with open(self.path("a.safetensors"), "rb") as a, open(self.path("b.safetensors"), "rb") as b:
                self.assertEqual(a.read(), b.read())

    def test_no_tensors(self):
        safetensors.torch.save_file({}, self.path("a.safetensors"))
        self.assertEqual(dump("rewrite", self.path("a.safetensors"), self.path("b.safetensors"))["tensors"], {})
        self.assertEqual(safetensors.torch.load_file(self.path("b.safetensors")), {})

    def test_sharded(self):
        first, second = {"a": torch.rand(3), "c": torch.rand(2, 2)}, {"b": torch.rand(5)}
        safetensors.torch.save_file(first, self.path("m-00001-of-00002.safetensors"))
        safetensors.torch.save_file(second, self.path("m-00002-of-00002.safetensors"))
        index = {"metadata": {"total_size": 48}, "weight_map": {
            "a": "m-00001-of-00002.safetensors", "b": "m-00002-of-00002.safetensors",
            "c": "m-00001-of-00002.safetensors"}}  # fmt: skip
        with open(self.path("m.safetensors.index.json"), "w") as f:
            json.dump(index, f)
        got = dump("sharded", self.path("m.safetensors.index.json"))
        self.assertEqual(got["tensors"], self.expected({**first, **second}))
        self.assertEqual(got["metadata"], {"total_size": "48"})

    def test_refuses_what_python_refuses(self):
        """Mutations of one real file: wherever Python refuses, we must; accepting more would be a silent difference."""
        safetensors.torch.save_file({"a": torch.rand(4), "b": torch.rand(2).half()}, self.path("a.safetensors"))
        with open(self.path("a.safetensors"), "rb") as f:
            good = f.read()
        refused = 0
        for at in range(len(good)):
            for bit in (0x01, 0x10, 0x80):
                bad = bytearray(good)
                bad[at] ^= bit
                try:
                    tensors = safetensors.deserialize(bytes(bad))
                except safetensors.SafetensorError:
                    tensors = None
                    refused += 1
                if at % 5 != 0:
                    continue  # one process a case: take a sample
                with open(self.path("b.safetensors"), "wb") as f:
                    f.write(bad)
                if tensors is None:
                    self.assertIn("b.safetensors", failure("safetensors", self.path("b.safetensors")))
                else:
                    names = dump("safetensors", self.path("b.safetensors"))["tensors"]
                    self.assertEqual(set(names), {name for name, _ in tensors})
        self.assertGreater(refused, 100)


class TorchSave(Oracle):
    def check(self, value):
        torch.save(value, self.path("a.pt"))
        self.assertEqual(parse_floats(dump("pickle", self.path("a.pt"))), describe(value))

    def test_scalars_and_containers(self):
        self.check({
            "ints": [0, 1, -1, 255, 256, 65535, 65536, -(2**31), 2**31, 2**40, -(2**40), 2**63 - 1, -(2**63)],
            "floats": (0.0, -0.0, 1.5, 1e300, 5e-324, float("inf"), float("-inf")),
            "text": ["", "a", "ünïcode 漢字 😀", "x" * 1000],
            "flags": (True, False, None),
            "empty": ([], (), {}, collections.OrderedDict()),
            "tuples": ((1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), tuple(range(300))),
            3: {"a": {"b": [({"c": None},)]}},
            (1, 2): "tuple key",
            "long": list(range(2500)),  # appended in batches of a thousand
        })  # fmt: skip

    def test_nan(self):
        torch.save(float("nan"), self.path("a.pt"))
        self.assertEqual(dump("pickle", self.path("a.pt")), {"float": "nan"})

    def test_every_element_type(self):
        dtypes = [*SAFETENSORS_NAMES, torch.complex128]
        self.check([random_tensor(dtype, 3, 4) for dtype in dtypes])

    def test_layouts(self):
        base = torch.rand(4, 5, 6)
        self.check({
            "transposed": base.permute(2, 0, 1), "sliced": base[1:3, ::2, 3:], "row": base[2, 1], "base": base,
            "expanded": torch.rand(3, 1).expand(3, 4), "scalar": torch.tensor(3.5), "empty": torch.empty(0, 3),
            "empty_view": base[4:], "channels_last": torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last),
        })  # fmt: skip

    def test_torch_objects(self):
        linear = torch.nn.Linear(3, 2)
        shared = torch.rand(3)
        self.check({
            "size": torch.rand(2, 3).size(), "device": torch.device("cpu"), "cuda": torch.device("cuda", 1),
            "dtypes": [*SAFETENSORS_NAMES], "parameter": torch.nn.Parameter(torch.rand(2)),
            "grad": torch.rand(2, requires_grad=True), "state": linear.state_dict(),
            "ordered": collections.OrderedDict(b=1, a=2), "twice": [shared, shared, shared[1:]],
            "shared_list": [[1, 2]] * 3,
        })  # fmt: skip

    def test_state_dict_of_a_deep_module(self):
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.check(torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).state_dict())

    def test_sample_inputs_of_an_exported_program(self):
        class Module(torch.nn.Module):
            def forward(self, x, *, scale):
                return x * scale["by"]

        arguments, keywords = (torch.rand(2, 3),), {"scale": {"by": torch.rand(3)}}
        program = torch.export.export(Module(), arguments, keywords)
        torch.export.save(program, self.path("m.pt2"))
        with zipfile.ZipFile(self.path("m.pt2")) as opened:
            [name] = [n for n in opened.namelist() if n.endswith("data/sample_inputs/model.pt")]
            members = {n: {"size": len(opened.read(n)), "sha256": digest(opened.read(n))} for n in opened.namelist()}
            with open(self.path("inputs.pt"), "wb") as f:
                f.write(opened.read(name))
        self.assertEqual(dump("zip", self.path("m.pt2")), members)
        self.assertEqual(dump("pickle", self.path("inputs.pt")), describe((arguments, keywords)))

    def test_code_is_refused(self):
        class Evil:
            def __reduce__(self):
                return os.system, ("echo this must never run > " + target,)

        target = self.path("evidence")
        torch.save([torch.rand(2), Evil()], self.path("a.pt"))
        message = failure("pickle", self.path("a.pt"))
        self.assertIn('"posix" "system" is not allowed', message)
        self.assertFalse(os.path.exists(target))

    def test_what_is_not_read_is_named(self):
        for value, word in [
            (torch.rand(2, dtype=torch.complex64).conj(), "conjugate"), (complex(1, 2), '"complex"'), ({1, 2}, '"set"'),
            (b"bytes", '"_codecs"'), (2**64, "64 bits"), (torch.rand(2, 2).to_sparse(), "_rebuild_sparse_tensor"),
            (torch.nn.Linear(1, 1), '"torch.nn.modules.linear"'), (torch.rand(3).untyped_storage(), "a storage"),
        ]:  # fmt: skip
            torch.save(value, self.path("a.pt"))
            message = failure("pickle", self.path("a.pt"))
            self.assertTrue(message.startswith("unsupported: "), message)
            self.assertIn(word, message)
        knot = [1]
        knot.append(knot)
        torch.save(knot, self.path("a.pt"))
        self.assertIn("contains itself", failure("pickle", self.path("a.pt")))
        torch.save([1], self.path("a.pt"), pickle_protocol=4)
        self.assertIn("protocol 4", failure("pickle", self.path("a.pt")))
        torch.save([1], self.path("a.pt"), _use_new_zipfile_serialization=False)
        self.assertIn("not a zip container", failure("pickle", self.path("a.pt")))


class Zip(Oracle):
    def members(self, path):
        with zipfile.ZipFile(path) as opened:
            return {n: {"size": len(opened.read(n)), "sha256": digest(opened.read(n))} for n in opened.namelist()}

    def check(self, data):
        path = self.path("a.zip")
        with open(path, "wb") as f:
            f.write(data)
        self.assertEqual(dump("zip", path), self.members(path))

    def test_python_zipfile(self):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as z:
            z.writestr("a/b.txt", "text")
            z.writestr("ünïcode/漢字", b"\0" * 1000)
            z.writestr("empty", b"")
            z.mkdir("folder")
            z.comment = b"a comment"
        self.check(buffer.getvalue())

    def test_no_members(self):
        buffer = io.BytesIO()
        zipfile.ZipFile(buffer, "w").close()
        self.check(buffer.getvalue())

    def test_streamed_members_have_descriptors(self):
        class Pipe(io.RawIOBase):
            def __init__(self):
                self.data = b""

            def writable(self):
                return True

            def write(self, part):
                self.data += bytes(part)
                return len(part)

        for force_zip64 in (False, True):
            pipe = Pipe()
            with zipfile.ZipFile(pipe, "w") as z:
                for name in ("x/one", "x/two"):
                    with z.open(name, "w", force_zip64=force_zip64) as f:
                        f.write(name.encode() * 100)
            self.assertEqual(struct.unpack_from("<H", pipe.data, 6)[0] & 8, 8)
            self.check(pipe.data)

    def test_zip64_sizes(self):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as z:
            with z.open("x/one", "w", force_zip64=True) as f:
                f.write(b"abc" * 100)
        self.check(buffer.getvalue())

    def test_many_members_need_zip64(self):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as z:
            for i in range(70000):
                z.writestr(str(i), b"")
        self.check(buffer.getvalue())

    def test_a_member_of_five_gigabytes(self):
        """Sparse on disk. The writer puts sizes past 4 GB into zip64 fields."""
        path, size = self.path("big.pt"), 5 * 2**30
        with open(path, "wb") as f:
            with zipfile.ZipFile(f, "w", allowZip64=True) as z:
                info = zipfile.ZipInfo("a/before")
                z.writestr(info, b"123")
                start = f.tell()
                f.write(struct.pack("<IHHHHHIIIHH", 0x04034B50, 45, 0, 0, 0, 0, 0, 2**32 - 1, 2**32 - 1, 5, 20))
                f.write(b"a/big" + struct.pack("<HHQQ", 1, 16, size, size))
                f.seek(size, os.SEEK_CUR)
                big = zipfile.ZipInfo("a/big")
                big.header_offset, big.file_size, big.compress_size, big.CRC = start, size, size, 0
                z.filelist.append(big)
                z.NameToInfo["a/big"] = big
                z.start_dir = f.tell()
                z.writestr("a/after", b"4567")
        self.assertEqual(dump("list", path), {"a/after": 4, "a/before": 3, "a/big": size})

    def test_compressed_members_are_refused(self):
        with zipfile.ZipFile(self.path("a.zip"), "w", zipfile.ZIP_DEFLATED) as z:
            z.writestr("bomb", b"\0" * 10_000_000)
        self.assertIn("compressed (method 8)", failure("zip", self.path("a.zip")))


if __name__ == "__main__":
    DUMP = os.path.abspath(sys.argv.pop(1))
    unittest.main()
