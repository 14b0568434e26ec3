"""The check for operator names must count what sources name, and let it only go down."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import check_operator_names  # noqa: E402

TWO = 'bool is_view(const Node& n) { return n.is("aten::view") || n.is("aten::t"); }\n'


class CheckOperatorNames(unittest.TestCase):
    def check(self, files, left=None, allowed=()):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_operator_names.check(root, {"left": left or {}, "allowed": list(allowed)})

    def test_a_file_that_lists_operators_is_refused(self):
        problems, found = self.check({"src/graph/a.cpp": TWO})
        self.assertEqual(found, {"src/graph/a.cpp": 2})
        self.assertIn("src/graph/a.cpp names operators 2 times, 0 are allowed", problems[0])

    def test_one_operator_with_overloads_comments_and_tests_pass(self):
        one = '// "aten::mm" and "aten::bmm"\nauto x = n.is("aten::add.Tensor") || n.is("aten::add.Scalar");\n'
        text = 'auto message = "no \\"aten::mm\\" and no aten::bmm";\n'
        files = {"src/a.cpp": one, "src/b.cpp": text, "src/a_test.cpp": TWO, "src/test_support.h": TWO, "tests/x.cpp": TWO}
        self.assertEqual(self.check(files), ([], {}))

    def test_numbers_go_down_only(self):
        files = {"src/a.cpp": TWO}
        self.assertEqual(self.check(files, {"src/a.cpp": 2})[0], [])
        self.assertIn("2 times, 1 are allowed", self.check(files, {"src/a.cpp": 1})[0][0])
        self.assertIn("2 times now, not 3", self.check(files, {"src/a.cpp": 3})[0][0])
        self.assertIn("0 times now, not 2", self.check(files, {"src/a.cpp": 2, "src/gone.cpp": 2})[0][0])
        self.assertEqual(check_operator_names.lowered({"b": 1, "a": 3, "gone": 2}, {"a": 2, "b": 4}), {"a": 2, "b": 1})

    def test_allowed_files_need_a_reason(self):
        entry = {"files": "src/graph/*.cpp", "reason": "the table of traits"}
        self.assertEqual(self.check({"src/graph/traits.cpp": TWO}, allowed=[entry]), ([], {}))
        self.assertIn("has no reason", self.check({}, allowed=[entry | {"reason": ""}])[0][0])


if __name__ == "__main__":
    unittest.main()
