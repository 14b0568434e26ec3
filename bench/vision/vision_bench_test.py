"""vision_bench and model_tables on a small ViT: all variants, right answers, ratios in the table."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import model_tables  # noqa: E402

VARIANTS = ["halftone-eager-fp32", "halftone-fp32", "halftone-int8dq-7bit", "halftone-int8dq"]


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


class VisionBench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "tiny.pt2"
            run(sys.executable, SCRIPTS / "export_vit.py", "--tiny", "-o", model)
            cls.rows = [json.loads(line) for line in run(program, model, "--json", "--seconds", "0.1").splitlines()]
            cls.report = run(program, model, "--report")

    def test_measures_every_variant_at_both_batches(self):
        self.assertEqual([(row["peer"], row["case"]) for row in self.rows], [(v, [b]) for b in (1, 8) for v in VARIANTS])
        for row in self.rows:
            self.assertGreater(row["ms"], 0)
            self.assertGreater(row["cos"], 0.999 if "fp32" in row["peer"] else 0.98, row)

    def test_everything_runs_natively(self):
        self.assertIn("halftone::attention by attention_f32", self.report)
        self.assertIn("aten::cat by copy", self.report)
        self.assertNotIn("conv2d", self.report)  # patches are rows of a linear
        self.assertNotIn("left to ATen", self.report)


class ModelTables(unittest.TestCase):
    ROWS = [{"peer": "halftone-eager-fp32", "case": [8], "ms": 20.0, "cos": 1.0},
            {"peer": "halftone-fp32", "case": [8], "ms": 10.0, "cos": 1.0},
            {"peer": "halftone-int8wo", "case": [8], "ms": 12.0, "cos": 0.999},
            {"peer": "halftone-int8dq", "case": [8], "ms": 4.0, "cos": 0.99},
            {"peer": "ort", "case": [8], "ms": 8.0, "cos": 1.0},
            {"peer": "ov", "case": [8], "ms": 16.0, "cos": 1.0},
            {"peer": "ort-int8", "case": [8], "ms": 5.0, "cos": 0.98}]

    def test_each_is_compared_with_the_fastest_peer_of_its_kind(self):
        ratios = {cells[1]: cells[4:] for cells in model_tables.cells(self.ROWS)}
        self.assertEqual(ratios["halftone-fp32"], ["0.50", "1.25"])
        self.assertEqual(ratios["halftone-int8wo"], ["0.60", "1.50"])
        self.assertEqual(ratios["halftone-int8dq"], ["0.20", "0.80"])
        self.assertEqual(ratios["ort"], ["0.40", "–"])

    def test_rounds_become_their_median(self):
        rounds = [{"peer": "ov", "case": [1], "ms": ms, "cos": 1.0} for ms in (5.0, 9.0, 6.0)] + self.ROWS
        rows = model_tables.median_of_rounds(rounds)
        self.assertEqual((rows[0]["ms"], rows[0]["rounds"]), (6.0, 3))
        self.assertEqual([row["ms"] for row in rows[1:]], [row["ms"] for row in self.ROWS])

    def test_without_peers_there_is_no_ratio(self):
        self.assertEqual({cells[5] for cells in model_tables.cells(self.ROWS[:4])}, {"–"})

    def test_columns_line_up(self):
        self.assertEqual(len({len(line) for line in model_tables.text_table(self.ROWS).splitlines()}), 1)


if __name__ == "__main__":
    program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
