"""Tests of halftone verify."""
import json

from cli_support import FOLDER, GOLDEN, CliTest, export, main, run

export("classifier")


class Verify(CliTest):
    """On golden files; what verify finds is tested where the format is, in src/checkpoint."""

    def test_a_sound_file(self):
        done = self.ok("verify", GOLDEN / "v1_graph_int8wo.ht")
        self.assertIn("is sound", done.stdout)
        self.assertIn("1 quantized layer,", done.stdout)
        report = json.loads(self.ok("verify", GOLDEN / "v1_graph_int8wo.ht", "--json").stdout)
        self.assertTrue(report["sound"])
        self.assertEqual(report["findings"], [])
        self.assertEqual(report["kind"], "graph")
        self.assertEqual(report["configs"]["fc"]["type"], "Int8WeightOnlyConfig")

    def test_a_backend(self):
        done = self.ok("verify", GOLDEN / "v2_backend_int8dq.ht")
        for words in ("version 2, written by halftone 0.2.0, needs Halftone ≥ 0.2.0", "weights   as the backend needs them", "QuantBackend(",
                      "on a CPU of 1999, chose int8dq", "F32[3, 64]", ", and a checksum of every 4 MiB (1 in all)"):  # fmt: skip
            self.assertIn(words, done.stdout)
        self.assertNotIn("ACTIVE", done.stdout)  # a word of the library
        report = json.loads(self.ok("verify", GOLDEN / "v2_backend_int8dq.ht", "--json").stdout)
        self.assertEqual(report["backend"]["state"], "ACTIVE")
        self.assertEqual(report["backend"]["samples"], ["F32[3, 64]"])
        self.assertEqual(report["tuning"]["cpu"], "a CPU of 1999")

    def test_fast_looks_at_the_metadata_only(self):
        data = bytearray((GOLDEN / "v2_graph_fp32.ht").read_bytes())
        data[-150] ^= 1
        (FOLDER / "weight.ht").write_bytes(data)
        self.fails(1, "verify", "weight.ht", says=["1 finding", "checksum of the bytes 0 to"])
        done = self.ok("verify", "weight.ht", "--fast")
        self.assertIn("were not looked at", done.stdout)
        self.assertFalse(json.loads(self.ok("verify", "weight.ht", "--fast", "--json").stdout)["bytes_checked"])

    def test_a_damaged_file(self):
        data = bytearray((GOLDEN / "v1_graph_fp32.ht").read_bytes())
        data[-100] ^= 1
        (FOLDER / "damaged.ht").write_bytes(data)
        self.fails(1, "verify", "damaged.ht", says=["1 finding", "checksum"])
        done = run("verify", "damaged.ht", "--json")
        self.assertEqual(done.returncode, 1)
        self.assertFalse(json.loads(done.stdout)["sound"])
        self.fails(1, "run", "damaged.ht", says=["checksum"])

    def test_what_is_no_checkpoint(self):
        self.fails(1, "verify", "classifier.pt2", says=["classifier.pt2"])
        self.fails(1, "verify", "nowhere.ht", says=["nowhere.ht"])
        self.fails(2, "verify")

    def test_checkpoints_run_and_are_inspected(self):
        for name in ("v1_graph_fp32.ht", "v1_graph_int8wo.ht"):
            self.ok("run", GOLDEN / name)
            self.ok("inspect", GOLDEN / name)
        self.fails(1, "run", GOLDEN / "v1_module_fp32.ht", says=["without a graph"])


if __name__ == "__main__":
    main()
