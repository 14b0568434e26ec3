"""docs/performance.md must say what the pages in docs/performance/ say. bench/performance_page_test.py tests the check itself."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import performance_summary  # noqa: E402


class PerformanceSummary(unittest.TestCase):
    SUMMARY = ROOT / "docs" / "performance.md"

    def test_is_up_to_date(self):
        self.assertTrue(list(performance_summary.folder_of(self.SUMMARY).glob("*.md")), "no page of any CPU")
        performance_summary.check(self.SUMMARY)

    def test_pages_are_called_as_their_cpu(self):
        for page in performance_summary.folder_of(self.SUMMARY).glob("*.md"):
            heading = performance_summary.HEADING.match(page.read_text(encoding="utf-8"))
            self.assertIsNotNone(heading, page)
            self.assertEqual(performance_summary.page_of(self.SUMMARY, heading["cpu"], heading["isa"]), page)


if __name__ == "__main__":
    unittest.main()
