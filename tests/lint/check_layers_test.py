"""The layer check must find each kind of forbidden include, and nothing in a sound tree."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import check_layers  # noqa: E402

SOUND = {
    "include/halftone/base/error.h": "#include <string>\n",
    "include/halftone/graph/graph.h": '#include <ATen/core/ivalue.h>\n#include "halftone/base/error.h"\n',
    "include/halftone/capture/capture.h": '#include "halftone/graph/graph.h"\n',
    "src/base/json.h": '#include "halftone/base/error.h"\n',
    "src/archive/zip.cpp": '#include "archive/zip.h"\n#include "base/json.h"\n#include <zlib.h>\n',
    "src/graph/graph.cpp": '#include <c10/core/Device.h>\n#include "archive/zip.h"\n#include "halftone/graph/graph.h"\n',
    "src/capture/pt2.cpp": '#include "graph/graph.h"\n#include "halftone/capture/capture.h"\n',
    "tools/halftone/main.cpp": '#include "halftone/capture/capture.h"\n#include "console.h"\n',
}


class CheckLayers(unittest.TestCase):
    def findings(self, files=None):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in (SOUND | (files or {})).items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_layers.check(root)

    def expect(self, file, text, *words):
        found = self.findings(files={file: text})
        self.assertEqual(len(found), 1, found)
        for word in (file, *words):
            self.assertIn(word, found[0])

    def test_sound_tree_has_no_findings(self):
        self.assertEqual(self.findings(), [])

    def test_component_above_is_refused(self):
        self.expect("src/base/json.cpp", '#include "archive/zip.h"\n', "base may use only no other component")
        self.expect("src/graph/lint.cpp", '#include "capture/pt2.h"\n', "graph may use only archive, base")

    def test_torch_in_a_torch_free_component_is_refused(self):
        self.expect("src/archive/bytes.cpp", "#include <ATen/core/Tensor.h>\n", "archive must not know torch")
        self.expect("src/base/log.cpp", "  #  include <c10/util/Exception.h>\n", "base must not know torch")

    def test_public_header_that_brings_torch_is_refused_too(self):
        self.expect("src/archive/bytes.cpp", '#include "halftone/capture/capture.h"\n', "archive must not know torch")

    def test_tools_and_public_headers_see_no_component(self):
        self.expect("tools/halftone/run.cpp", '#include "graph/interpreter.h"\n', "only include/halftone")
        self.expect("include/halftone/bad.h", '#include "base/json.h"\n', "only include/halftone")

    def test_unknown_component_is_refused(self):
        found = self.findings(files={"src/attic/x.cpp": ""})
        self.assertEqual(found, ["src/attic: not in the list of components of scripts/check_layers.py"])

    def test_circle_of_folders_inside_a_component_is_refused(self):
        files = {
            "src/graph/run/session.h": '#include "graph/text/print.h"\n',
            "src/graph/text/print.h": '#include "graph/nodes/node.h"\n',
            "src/graph/nodes/node.h": '#include "graph/run/session.h"\n',
        }
        found = self.findings(files)
        self.assertEqual(len(found), 1, found)
        self.assertIn("in a circle", found[0])
        for line in ("node.h includes graph/run/session.h", "session.h includes graph/text/print.h", "print.h includes graph/nodes/node.h"):
            self.assertIn(line, found[0])
        files["src/graph/nodes/node.h"] = ""
        self.assertEqual(self.findings(files), [])

    def test_folders_that_meet_again_below_are_no_circle(self):
        files = {
            "src/graph/a/a.h": '#include "graph/b/b.h"\n#include "graph/c/c.h"\n',
            "src/graph/b/b.h": '#include "graph/d/d.h"\n',
            "src/graph/c/c.h": '#include "graph/b/b.h"\n#include "graph/d/d.h"\n',
            "src/graph/d/d.h": "",
        }
        self.assertEqual(self.findings(files), [])

    def test_tests_may_look_anywhere(self):
        files = {
            "src/graph/run/session.h": '#include "graph/text/print.h"\n',
            "src/graph/text/print.h": "",
            "src/graph/text/print_test.cpp": '#include "graph/run/session.h"\n',
        }
        self.assertEqual(self.findings(files), [])

    def test_crowded_folder_is_refused(self):
        many = {f"src/base/file{i}.cpp": "" for i in range(check_layers.MAX_FILES + 1)}
        found = self.findings(many)
        self.assertEqual(len(found), 1, found)
        self.assertIn("src/base: 42 files, at most 40", found[0])


if __name__ == "__main__":
    unittest.main()
