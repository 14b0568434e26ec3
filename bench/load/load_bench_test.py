"""Both load benchmarks on the small BERT of the repo: they end well, and say what they measured."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class LoadBench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.model = pathlib.Path(cls.folder.name) / "tiny.pt2"
        subprocess.run([sys.executable, ROOT / "scripts" / "export_minilm.py", "--tiny", "-o", cls.model], check=True)

    def json_of(self, program):
        done = subprocess.run([program, self.model], stdout=subprocess.PIPE, text=True)
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        self.assertTrue(rows, done.stdout)
        return rows

    def test_first_result_on_the_backend(self):
        rows = self.json_of(backend_load_bench)
        self.assertEqual([row["what"] for row in rows], ["fp32", "int8dq", "int8dq, packed panels in the file"])
        for row in rows:
            self.assertGreater(row["load_ms"], 0)
            self.assertAlmostEqual(row["ms"], row["load_ms"] + row["compile_ms"] + row["run_ms"], delta=0.05)
            self.assertGreater(row["arena_mb"], 0)
            # The file is touched from end to end by the checksum.
            self.assertGreater(row["mapped_mb"], 0.05)
            # A model of 0.3 MB: what is more than that is overhead of ours.
            self.assertLess(row["private_mb"], 20)

    def test_first_result_in_the_interpreter(self):
        rows = self.json_of(load_bench)
        self.assertEqual(len(rows), 2)  # .pt2 and .ht
        for row in rows:
            self.assertGreater(row["peak_mb"], row["baseline_mb"])


if __name__ == "__main__":
    load_bench, backend_load_bench = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
    unittest.main()
