"""autoquant_bench on a model that is too small to quantize: it plans, plans again, measures, and says what it found."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest


class AutoquantBench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            figures = pathlib.Path(folder) / "figures.json"
            command = [program, "tiny_mlp", "--batch", "4", "--seconds", "0.5", "--json", figures]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            cls.code, cls.output = done.returncode, done.stdout
            cls.figures = json.loads(figures.read_text())

    def test_measures_fp32_and_every_scheme_that_is_right(self):
        (batch,) = self.figures["batches"]
        names = [row["name"] for row in batch["rows"]]
        self.assertEqual(names[:2], ["plan", "fp32"])
        self.assertIn("int8wo", names)
        for row in batch["rows"]:
            self.assertGreater(row["ms"], 0, row)
            self.assertGreaterEqual(row["cosine"], 0.995, row)

    def test_the_cache_and_the_replay_give_the_same(self):
        (batch,) = self.figures["batches"]
        self.assertTrue(batch["same_plan"])
        self.assertTrue(batch["same_bytes"])
        self.assertLess(batch["cached_seconds"], batch["cold_seconds"])

    def test_the_exit_code_says_whether_all_was_met(self):
        # A busy machine may miss it; what counts here is that the program says so.
        self.assertEqual(self.code, 0 if self.figures["met"] else 1)
        self.assertEqual("MISSED" in self.output, not self.figures["met"])


if __name__ == "__main__":
    program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
