"""Templates beside the package jinja2, in the environment that transformers makes: byte for byte the same text, or an error in both.

    oracle_test.py TEMPLATE_DUMP [TEST…]
"""
import importlib.util
import sys
import unittest

if importlib.util.find_spec("jinja2") is None:
    print("template oracle: skipped: the package jinja2 is not installed (scripts/setup test)")
    sys.exit(77)

from template_support import CONVERSATIONS, Templates, jinja_outcome
from template_texts import CHATS, EXPRESSIONS, ON_VARIABLES, STATEMENTS, WHITESPACE

PROGRAM = sys.argv[1]


class Oracle(Templates):
    program = PROGRAM

    def test_chats(self):
        """Templates with the constructs of published ones, over conversations with and without tools, system prompts, odd contents."""
        cases = [(text, conversation) for text in CHATS.values() for conversation in CONVERSATIONS]
        same, refused = self.compare(cases)
        self.assertGreater(same, len(cases) // 2)
        self.assertGreater(refused, 10)  # roles that do not take turns, say

    def test_statements(self):
        same, _ = self.compare([(text, CONVERSATIONS[0]) for text in STATEMENTS])
        self.assertEqual(same, len(STATEMENTS))

    def test_white_space(self):
        """Tags with every sign, at every place of a line, between texts of spaces and line ends."""
        cases = [(text, CONVERSATIONS[0]) for text in WHITESPACE]
        same, _ = self.compare(cases)
        self.assertGreater(len(cases), 5000)
        self.assertEqual(same, len(cases))

    def test_expressions(self):
        """Each expression of a list, and each filter and operator on values of every kind. Where Python gives a value, we give the
        same or say that something is not supported; where it gives an error, we give one."""
        cases = [("{{ " + text + " }}", CONVERSATIONS[0]) for text in EXPRESSIONS] + [(text, CONVERSATIONS[0]) for text in ON_VARIABLES]
        same, refused = self.compare(cases, may_be_unsupported=True)
        self.assertGreater(same, 3000)
        self.assertGreater(refused, 1000)

    def test_oracle_tells_errors(self):
        self.assertEqual(jinja_outcome("{{ 1 + 'a' }}", CONVERSATIONS[0]), None)
        self.assertEqual(jinja_outcome("{{ 1 + 1 }}\n", CONVERSATIONS[0]), "2")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
