#!/usr/bin/env python3
"""oracle_test.py TOOL: torch.ao's own backend configs load, print and save back unchanged, and our built-in ones hold them."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TOOL = sys.argv[1] if len(sys.argv) > 1 else "backend_config_tool"
NAMES = ["native", "x86", "fbgemm", "qnnpack", "executorch", "onednn"]


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stderr[-2000:]}")
    return done.stdout


def python_configs(folder):
    """All configs of torch.ao as JSON files, by name."""
    run(sys.executable, HERE / "python_config.py", folder, *NAMES)
    return {name: folder / f"{name}.json" for name in NAMES}


def by_pattern(config):
    """Pattern -> the rest, for comparing what two configs mean."""
    return {json.dumps(each.get("pattern", each.get("pattern_complex_format"))):
            {key: value for key, value in each.items() if not key.startswith("pattern")} for each in config["configs"]}


class Oracle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.files = python_configs(pathlib.Path(cls.folder.name))
        cls.configs = {name: json.loads(path.read_text()) for name, path in cls.files.items()}

    def test_there_and_back(self):
        for name, path in self.files.items():
            with self.subTest(name):
                back = json.loads(run(TOOL, "json", path))
                self.assertEqual(back["name"], self.configs[name]["name"])
                self.assertEqual(by_pattern(back), by_pattern(self.configs[name]))
                self.assertEqual(len(back["configs"]), len(self.configs[name]["configs"]))

    def test_text_has_every_pattern(self):
        for name, path in self.files.items():
            with self.subTest(name):
                lines = run(TOOL, "text", path).splitlines()
                self.assertTrue(all(len(line) <= 100 for line in lines))
                rows = sum(max(1, len(each["dtype_configs"])) for each in self.configs[name]["configs"])
                self.assertEqual(len([line for line in lines if line.strip()]), rows + 3)  # a title, a header, a rule

    def test_builtin_configs_hold_torch_aos(self):
        for name in ("native", "x86"):
            with self.subTest(name):
                ours, theirs = by_pattern(json.loads(run(TOOL, "builtin", name))), by_pattern(self.configs[name])
                self.assertEqual({key: ours.get(key) for key in theirs}, theirs)
                more = {key for key in ours if key not in theirs}
                # What torch.ao's have not: sums after products, and in x86 layer norms.
                self.assertTrue(all("add" in key or "ayer_norm" in key or "LayerNorm" in key for key in more), more)
                self.assertGreater(len(more), 20)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
