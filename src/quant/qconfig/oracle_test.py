#!/usr/bin/env python3
"""oracle_test.py TOOL: our default qconfigs and mappings are torch.ao's."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TOOL = sys.argv[1] if len(sys.argv) > 1 else "qconfig_tool"


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stderr[-2000:]}")
    return done.stdout


def sorted_mapping(text):
    content = json.loads(text)
    return {key: sorted(value, key=json.dumps) if isinstance(value, list) else value for key, value in content.items()}


class Oracle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        run(sys.executable, HERE / "python_qconfig.py", cls.folder.name)

    def python(self, name):
        return sorted_mapping(run(TOOL, "json", pathlib.Path(self.folder.name, f"{name}.json")))

    def test_default_mappings(self):
        for backend in ("x86", "fbgemm", "qnnpack", "onednn"):
            with self.subTest(backend):
                ours = sorted_mapping(run(TOOL, "default", backend))
                self.assertEqual(ours, self.python(backend))
                self.assertEqual(len(ours["object_type"]), 23)

    def test_qconfigs_by_name(self):
        self.assertEqual(sorted_mapping(run(TOOL, "names")), self.python("names"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
