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


if __name__ == "__main__":
    unittest.main()
