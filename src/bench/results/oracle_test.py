#!/usr/bin/env python3
"""oracle_test.py TOOL: what Python's csv and json modules make of our files, and we of theirs."""
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv[1] if len(sys.argv) > 1 else "bench_results_tool"
STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def payloads():
    entries = json.loads((pathlib.Path(__file__).parent / "testdata/payloads.json").read_text(encoding="utf-8"))
    return [entry["text"] * entry.get("repeat", 1) for entry in entries if "text" in entry]


def guarded(text):
    return text.startswith(("'", '"')) or text.lstrip(" ").startswith(STARTS)


def unguard(text):
    return text[1:] if text.startswith("'") and guarded(text[1:]) else text


def document(names):
    rows = [{"name": name, "error": name, "batch_size": i, "speedup": 1 / (i + 1), "bytes": i * 1000, "scheme": "int8dynamic"}
            for i, name in enumerate(names)]
    return {"format": "halftone-bench", "version": 1, "rows": rows}


class Oracle(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.names = payloads()

    def path(self, name):
        return pathlib.Path(self.folder.name, name)

    def run_tool(self, *arguments, code=0):
        done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr.decode(errors="replace")[:2000])
        return done

    def test_python_reads_our_csv(self):
        self.path("in.json").write_text(json.dumps(document(self.names)), encoding="utf-8")
        self.run_tool("csv", self.path("in.json"), self.path("out.csv"))
        with open(self.path("out.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
        self.assertEqual([unguard(row["name"]) for row in rows], self.names)
        self.assertEqual([unguard(row["error"]) for row in rows], self.names)
        self.assertEqual([float(row["speedup"]) for row in rows], [1 / (i + 1) for i in range(len(rows))])
        self.assertEqual([int(row["bytes"]) for row in rows], [i * 1000 for i in range(len(rows))])
        for row in rows:
            self.assertFalse(any(str(value).lstrip().startswith(("=", "+", "-", "@")) for value in row.values()), row)

    def test_we_read_pythons_csv(self):
        # With "\n", Python 3.11 leaves a lone carriage return bare, which we refuse: so everything in quotes there.
        for line_end, quoting in (("\n", csv.QUOTE_ALL), ("\r\n", csv.QUOTE_MINIMAL)):
            text = io.StringIO(newline="")
            writer = csv.writer(text, lineterminator=line_end, quoting=quoting)
            writer.writerow(["name", "speedup", "error"])
            writer.writerows([name, repr(1 / 3), name] for name in self.names)
            self.path("in.csv").write_bytes(text.getvalue().encode())
            self.run_tool("json-of-csv", self.path("in.csv"), self.path("out.json"))
            rows = json.loads(self.path("out.json").read_text(encoding="utf-8"))["rows"]
            self.assertEqual([row["name"] for row in rows], [unguard(name) for name in self.names])
            self.assertTrue(all(row["speedup"] == 1 / 3 for row in rows))

    def test_json_both_ways(self):
        wanted = document(self.names)
        for ascii_only in (True, False):
            self.path("in.json").write_text(json.dumps(wanted, ensure_ascii=ascii_only), encoding="utf-8")
            self.run_tool("json", self.path("in.json"), self.path("out.json"))
            rows = json.loads(self.path("out.json").read_text(encoding="utf-8"))["rows"]
            for row, original in zip(rows, wanted["rows"], strict=True):
                self.assertEqual({key: row[key] for key in original}, original)

    def test_data_in_html_is_the_json(self):
        self.path("in.json").write_text(json.dumps(document(self.names)), encoding="utf-8")
        self.run_tool("html", self.path("in.json"), self.path("out.html"))
        page = self.path("out.html").read_text(encoding="utf-8")
        block = page.split('id="results">', 1)[1].split("</script>", 1)[0]
        self.assertEqual([row["name"] for row in json.loads(block)["rows"]], self.names)

    def test_appended_rows_are_whole(self):
        """Four processes append every payload at once."""
        self.path("in.json").write_text(json.dumps(document(self.names)), encoding="utf-8")
        running = [subprocess.Popen([TOOL, "append", str(self.path("out.csv")), str(self.path("in.json"))]) for _ in range(4)]
        self.assertEqual([process.wait(timeout=60) for process in running], [0] * 4)
        with open(self.path("out.csv"), encoding="utf-8", newline="") as file:
            names = [unguard(row["name"]) for row in csv.DictReader(file, strict=True)]
        self.assertEqual(sorted(names), sorted(self.names * 4))

    def test_check_says_by_its_exit_code(self):
        good = document(["a", "b"])
        for row in good["rows"]:
            row["accuracy"] = "pass"
        bad = json.loads(json.dumps(good))
        bad["rows"][1]["accuracy"] = "fail_accuracy"
        for name, data in (("good", good), ("bad", bad)):
            self.path(f"{name}.json").write_text(json.dumps(data))
            self.run_tool("csv", self.path(f"{name}.json"), self.path(f"{name}.csv"))
        self.run_tool("check", self.path("good.csv"), self.path("good.csv"))
        self.assertIn(b"accuracy worse", self.run_tool("check", self.path("good.csv"), self.path("bad.csv"), code=1).stdout)
        self.run_tool("check", self.path("bad.csv"), self.path("good.csv"), code=3)
        self.assertIn(b"no-such.csv", self.run_tool("compare", self.path("good.csv"), self.path("no-such.csv"), code=2).stderr)

    def test_terminal_output_has_no_control_codes(self):
        self.path("in.json").write_text(json.dumps(document(self.names)), encoding="utf-8")
        text = self.run_tool("describe", self.path("in.json")).stdout.decode()
        found = {c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u2028\u2029\u200b\ufeff")}
        self.assertEqual(found, set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
