""".editorconfig agrees with .clang-format, and the files agree with .editorconfig."""
import configparser
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT_BYTE_FOR_BYTE = ("tests/fuzz/seeds/", "tests/fuzz/regressions/")


def editorconfig():
    parser = configparser.ConfigParser()
    parser.read_string("[top]\n" + (ROOT / ".editorconfig").read_text(encoding="utf-8"))
    return parser


def clang_format():
    """The settings of .clang-format; those that are not there are Google's."""
    return {"IndentWidth": "2", "UseTab": "Never", "ColumnLimit": "80"} | dict(
        re.findall(r"(?m)^(\w+):\s*(\S+)", (ROOT / ".clang-format").read_text()))


def text_files():
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    for name in names:
        path = ROOT / name
        if path.is_file() and not name.startswith(KEPT_BYTE_FOR_BYTE):
            data = path.read_bytes()
            if b"\0" not in data:
                yield name, data


@unittest.skipUnless((ROOT / ".git").exists(), "not a git checkout: a source archive may hold built files")
class Files(unittest.TestCase):
    def test_end_in_one_newline_without_blanks_before_it(self):
        wrong = []
        for name, data in text_files():
            if data and not data.endswith(b"\n") or re.search(rb"[ \t\r]\n", data):
                wrong.append(name)
        self.assertEqual(wrong, [])


class Editorconfig(unittest.TestCase):
    def test_agrees_with_clang_format(self):
        ours, theirs = editorconfig(), clang_format()
        self.assertEqual(theirs["BasedOnStyle"], "Google")
        self.assertEqual(ours["*.{cpp,h}"]["max_line_length"], theirs["ColumnLimit"])
        self.assertEqual(ours["*"]["indent_size"], theirs["IndentWidth"])
        self.assertEqual((ours["*"]["indent_style"], theirs["UseTab"]), ("space", "Never"))
        self.assertNotIn("indent_size", ours["*.{cpp,h}"])

    def test_makefiles_have_tabs(self):
        self.assertEqual(editorconfig()["Makefile"]["indent_style"], "tab")


if __name__ == "__main__":
    unittest.main()
