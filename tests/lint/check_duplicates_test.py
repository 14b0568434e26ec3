"""The check for duplicates must find equal bodies whatever their names, and only those."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import check_duplicates  # noqa: E402

BODY = """{
  int64_t total = 0;
  for (const Value* value : graph.values()) {
    if (value->users().empty()) continue;
    total += value->bytes();
  }
  if (total == 0) {
    fail("nothing in {}", graph.name());
  }
  return total;
}
"""
OTHER_NAMES = """{
  // The same with other names.
  std::size_t sum = 1;
  for (const std::string* text : page.lines()) {
    if (text->trim().empty()) continue;
    sum += text->size();
  }
  if (sum == 7) { fail("no text", page.title()); }
  return sum;
}
"""


class CheckDuplicates(unittest.TestCase):
    def check(self, files, left=0, accepted=()):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_duplicates.check(root, {"left": left, "accepted": list(accepted)})

    def names(self, text):
        return [body.name for body in check_duplicates.bodies("x.cpp", text)]

    def test_names_literals_comments_and_line_breaks_do_not_count(self):
        problems, left = self.check({"src/a.cpp": "int64_t bytes(const Graph& graph) " + BODY,
                                     "tools/b.cpp": "namespace x {\nclass P { size_t letters(Page page) const " + OTHER_NAMES + "};\n}"})
        self.assertEqual([[body.name for body in group] for group in left], [["bytes", "letters"]])
        self.assertIn("src/a.cpp:1 bytes, tools/b.cpp:2 letters", problems[1])

    def test_other_code_and_short_bodies_pass(self):
        self.assertEqual(self.check({"src/a.cpp": "int f() " + BODY, "src/b.cpp": "int f() " + BODY.replace("==", "!=")})[0], [])
        short = "{\n  a();\n  b();\n  c();\n  d();\n  e();\n  f();\n  g();\n}\n"
        self.assertEqual(self.check({"src/a.cpp": "void f() " + short + "void g() " + short})[0], [])

    def test_the_number_that_is_left_may_neither_grow_nor_be_too_large(self):
        twice = {"src/a.cpp": "int f() " + BODY + "int g() " + BODY}
        self.assertEqual(self.check(twice, left=1)[0], [])
        self.assertEqual(self.check(twice, left=2)[0], ["1 function bodies stand twice; lower `left` from 2"])
        self.assertIn("1 function bodies stand twice, 0 are allowed", self.check(twice)[0][0])

    def test_accepted_groups_need_a_reason_and_must_stand(self):
        twice = {"src/a.cpp": "int f() " + BODY + "int g() " + BODY}
        entry = {"functions": ["src/a.cpp:f", "src/?.cpp:g"], "reason": "instruction sets"}
        self.assertEqual(self.check(twice, accepted=[entry])[0], [])
        self.assertIn("has no reason", self.check(twice, accepted=[entry | {"reason": " "}])[0][0])
        self.assertIn("no longer stands twice", self.check({"src/a.cpp": "int f() " + BODY}, accepted=[entry])[0][0])
        # A third copy elsewhere is not covered by the entry.
        self.assertIn("2 function bodies", self.check(twice | {"src/c.cpp": "int h() " + BODY}, accepted=[entry])[0][1])

    def test_finds_all_kinds_of_functions(self):
        text = """
            #define MACRO(x) { if (x) { \\
              y(); } }
            namespace a::b {
            enum class Kind { kOne, kTwo };
            const char* kTable[] = {"(", R"x(a " { )" )x", "}"};
            struct S : Base {
              explicit S(int x) : x_(x), y_{x, {1}} { start(); }
              ~S() override { stop(); }
              bool operator==(const S& o) const { return x_ == o.x_; }
              template <typename T> requires(sizeof(T) > 1) auto get() const noexcept -> T { return T{x_}; }
              int x_ = 0; std::vector<int> y_{1, 2};
              std::function<void()> f = [] { run(); };
            };
            extern "C" { void plain(void) { char c = '{'; use(c); } }
            TEST(Suite, Case) { EXPECT_TRUE([&] { return true; }()); }
            int S::outside() { struct Local { int inner() { return 1; } }; return Local{}.inner(); }
            }
        """
        self.assertEqual(self.names(text), ["S", "~S", "operator==", "get", "plain", "Suite.Case", "outside"])


if __name__ == "__main__":
    unittest.main()
