"""The first steps are for reading: at most 25 lines each, of Halftone only the umbrella header, and every one is listed."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples/first_steps"
STEPS = ["load", "capture", "quantize", "compile", "tune", "deploy", "train", "static_int8", "diagnose", "custom_scheme"]


class FirstSteps(unittest.TestCase):
    def test_there_are_ten(self):
        self.assertEqual({path.stem for path in FOLDER.glob("*.cpp")}, set(STEPS))

    def test_each_is_short_and_uses_the_umbrella_header_alone(self):
        for step in STEPS:
            with self.subTest(step=step):
                text = (FOLDER / f"{step}.cpp").read_text()
                self.assertLessEqual(len(text.splitlines()), 25)
                self.assertEqual(re.findall(r'#include [<"](halftone/[^>"]+)', text), ["halftone/halftone.h"])

    def test_each_is_built_run_and_described(self):
        built = re.search(r"set\(first_steps ([^)]*)\)", (ROOT / "examples/CMakeLists.txt").read_text()).group(1).split()
        self.assertEqual(set(built), set(STEPS))
        readme = (ROOT / "examples/README.md").read_text()
        for step in STEPS:
            self.assertIn(f"(first_steps/{step}.cpp)", readme)


if __name__ == "__main__":
    unittest.main()
