#!/usr/bin/env python3
"""screenshot.py TOOL OUT.png: the head of the sample report, as a desktop shows it. scripts/report_screenshot calls it."""
import json
import pathlib
import subprocess
import sys
import tempfile

import devtools
import make_sample


def main(tool, out):
    with tempfile.TemporaryDirectory() as name, devtools.Browser() as browser:
        source, page = (pathlib.Path(name, "sample" + end) for end in (".json", ".html"))
        source.write_text(json.dumps(make_sample.sample()), encoding="utf-8")
        subprocess.run([tool, "html", str(source), str(page)], check=True)
        tab = browser.page()
        tab.viewport(1180, 1340)
        tab.prefer("light")
        tab.open(page)
        tab.screenshot(pathlib.Path(out), whole=False)
        assert not tab.problems(), tab.problems()


if __name__ == "__main__":
    main(*sys.argv[1:])
