"""Opens the golden files with the safetensors package, which knows nothing of Halftone, and compares tensors and checksum.

usage: python_test.py FOLDER
"""
import hashlib
import json
import pathlib
import sys
import unittest

import torch
from safetensors import safe_open
from safetensors.torch import load_file

FOLDER = pathlib.Path()


class PythonReadsCheckpoints(unittest.TestCase):
    def test_tensors_are_what_was_saved(self):
        files = sorted(FOLDER.glob("*.ht"))
        self.assertTrue(files)
        for path in files:
            with self.subTest(path.name):
                found = load_file(path)
                expected = load_file(path.with_suffix("").with_suffix(".expected.safetensors"))
                weights = {name[7:]: tensor for name, tensor in expected.items() if name.startswith("weight/")}
                self.assertTrue(weights)
                for name, tensor in weights.items():
                    self.assertEqual(found[name].dtype, tensor.dtype)
                    self.assertEqual(found[name].shape, tensor.shape)
                    self.assertTrue(torch.equal(found[name].view(torch.uint8), tensor.view(torch.uint8)), name)

    def check_chunks(self, data, table):
        """As docs/format.md says it."""
        covered = data[: len(data) - 32 - table.nbytes]
        rows = [hashlib.sha256(covered[i : i + 2**22]).digest() for i in range(0, len(covered), 2**22)]
        rows.append(hashlib.sha256(b"".join(rows)).digest())
        self.assertEqual(table.tobytes(), b"".join(rows))

    def test_metadata_and_layout(self):
        for path in sorted(FOLDER.glob("*.ht")):
            with self.subTest(path.name), safe_open(path, "pt") as opened:
                metadata = opened.metadata()
                version = metadata["halftone.format"]
                self.assertEqual(path.name[: len("v1")], "v" + version)
                self.assertIn(metadata["halftone.kind"], ("graph", "module"))
                for record in json.loads(metadata["halftone.tensors"]):
                    self.assertIn(record.get("stored", record["name"]), opened.keys())
                data = path.read_bytes()
                digest = opened.get_tensor("__halftone__.sha256").numpy().tobytes()
                self.assertEqual(data[-32:], digest)
                self.assertEqual(hashlib.sha256(data[:-32]).digest(), digest)
                if version != "1":
                    self.assertEqual(metadata["halftone.needs"], "0.2.0")
                    self.check_chunks(data, opened.get_tensor("__halftone__.digests").numpy())
                length = int.from_bytes(data[:8], "little")
                header = json.loads(data[8 : 8 + length])
                for name, entry in header.items():
                    ours = name == "__metadata__" or name.startswith(("__halftone__.pad.", "__halftone__.sha256", "__halftone__.digests"))
                    if not ours:
                        self.assertEqual((8 + length + entry["data_offsets"][0]) % 64, 0, name)


if __name__ == "__main__":
    FOLDER = pathlib.Path(sys.argv.pop(1))
    unittest.main()
