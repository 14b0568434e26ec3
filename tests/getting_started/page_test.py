#!/usr/bin/env python3
"""Tests of page.py: what it takes for a command, and which output is not what a page shows."""
import unittest

import page

PAGE = """# Title

## 1. One

Save this as `a.py`:

```python
print(1)
```

```sh
python3 a.py
echo one \\
  two
```

```text
1
one two
```

## 2. Two

```sh
true
```
"""


class ReadSteps(unittest.TestCase):
    def test_files_commands_and_output(self):
        file, commands, last = page.read_steps(PAGE)
        self.assertEqual((file.file, file.text, file.section), ("a.py", "print(1)\n", "1. One"))
        self.assertEqual((commands.commands, commands.expected), (["python3 a.py", "echo one  two"], "1\none two\n"))
        self.assertEqual((last.commands, last.expected, last.section), (["true"], None, "2. Two"))

    def test_refuses_what_would_not_be_run(self):
        with self.assertRaisesRegex(AssertionError, "say what this file is called"):
            page.read_steps("Code:\n\n```cpp\nint x;\n```\n")
        with self.assertRaisesRegex(AssertionError, "belongs to no commands"):
            page.read_steps(PAGE.replace("```text", "and here:\n\n```text"))


class OutputPattern(unittest.TestCase):
    def matches(self, expected, output):
        return page.output_pattern(expected).fullmatch(output) is not None

    def test_exact(self):
        self.assertTrue(self.matches("shape [8, 4]\n", "shape [8, 4]\n"))
        for output in ("shape [8, 5]\n", "shape [8, 4]\nmore\n", "", "more\nshape [8, 4]\n", "shape [8, 4] x\n"):
            self.assertFalse(self.matches("shape [8, 4]\n", output), output)

    def test_numbers_with_a_point_differ_whole_ones_do_not(self):
        self.assertTrue(self.matches("7.3 MB -> 2.6 MB, 9 layers\n", "10.25 MB -> 3 MB,  9 layers\n"))
        self.assertFalse(self.matches("7.3 MB, 9 layers\n", "7.3 MB, 8 layers\n"))
        self.assertFalse(self.matches("7.3 MB\n", "none MB\n"))

    def test_left_out(self):
        self.assertTrue(self.matches("a … c\n", "a b b c\n"))
        self.assertFalse(self.matches("a … c\n", "a b\nc\n"))
        self.assertTrue(self.matches("…\nb\n…\n", "a\na\nb\nc\n"))
        self.assertTrue(self.matches("…\nb\n…\n", "b\n"))
        self.assertFalse(self.matches("…\nb\n…\n", "a\nc\n"))

    def test_widths_of_columns(self):
        self.assertTrue(self.matches("name  ms\n----  -----\n", "name    ms\n------  ----\n"))

    def test_says_which_line_is_missing(self):
        self.assertEqual(page.difference("a\n…\nb\nc\n", "a\nx\nb\nd\n"), "c")
        self.assertEqual(page.difference("a\n", "a\nb\n"), "(the end: there is more output)")


if __name__ == "__main__":
    unittest.main()
