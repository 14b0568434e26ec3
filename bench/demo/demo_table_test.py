"""demo_table on the small BERT of the repo: a line for each scheme, plausible numbers, at most 100 columns."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMES = ["eager", "fp32", "int8wo", "int8dq", "int8dq, 7 bits", "int4wo", "int4wo, int8 act."]
NUMBERS = re.compile(r"([\d.]+) ms +([\d.]+) x +([-\d.]+) +([\d.]+ [kM]?B) +([\d.]+ [kM]?B)$")
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6}


def size(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


class DemoTable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "tiny.pt2"
            subprocess.run([sys.executable, ROOT / "scripts" / "export_minilm.py", "--tiny", "-o", model], check=True)
            command = [program, model, "--seconds", "0.2", "--shape", "2", "16"]
            cls.lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()

    def test_fits_the_page(self):
        self.assertLessEqual(max(map(len, self.lines)), 100, self.lines)

    def test_has_a_plausible_line_for_each_scheme(self):
        rows = [line for line in self.lines if NUMBERS.search(line)]
        self.assertEqual(len(rows), len(SCHEMES), self.lines)
        disk = {}
        for scheme, row in zip(SCHEMES, rows):
            self.assertTrue(row.startswith(scheme + " "), row)
            *numbers, on_disk, in_memory = NUMBERS.search(row).groups()
            time, speed_up, cosine = map(float, numbers)
            disk[scheme] = size(on_disk)
            self.assertGreater(time, 0)
            self.assertGreater(speed_up, 0)
            self.assertGreater(size(in_memory), 0)
            self.assertGreater(cosine, 0.99 if scheme in ("eager", "fp32", "int8wo") else 0.9, row)
        self.assertLess(disk["int8wo"], disk["fp32"])
        self.assertLess(disk["int4wo"], disk["int8wo"])


if __name__ == "__main__":
    program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
