"""The documents: links lead somewhere, the index has all pages, api.md has all headers, hacking.md names what exists."""
import functools
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SOURCE_FOLDERS = ("bench", "cmake", "docs", "examples", "include", "python", "scripts", "src", "tests", "tools")


def pages(root):
    """What a reader may come upon: the documents whose links are checked."""
    return [root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md", root / "SECURITY.md", *sorted((root / "docs").rglob("*.md")),
            root / "examples/README.md"]


def without_code(text):
    """Markdown without code blocks; code within lines stays."""
    text = re.sub(r"(?ms)^```.*?^```\s*$", "", text)
    return re.sub(r"(?m)(?:(?<=\n\n)|\A)(?: {4}(?! *[-\d]).*\n?)+", "", text)


def links(text):
    plain = re.sub(r"`[^`\n]*`", lambda code: "x" * len(code[0]), without_code(text))
    return re.findall(r"\]\(([^()\s]+)\)", plain)


def anchors(text):
    """The names that GitHub gives to headings."""
    found = set()
    for heading in re.findall(r"(?m)^#+ (.*)$", re.sub(r"(?ms)^```.*?^```\s*$", "", text)):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        number = 0
        while (name if number == 0 else f"{name}-{number}") in found:
            number += 1
        found.add(name if number == 0 else f"{name}-{number}")
    return found


def broken_links(root):
    broken = []
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        for link in links(text):
            if re.match(r"[a-z]+:", link):  # another site
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path) if path else page
            if not target.exists():
                broken.append(f"{page.relative_to(root)}: no file {link}")
            elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
                broken.append(f"{page.relative_to(root)}: no heading {link}")
    return broken


def not_linked(index, wanted):
    """Those of the files that a page has no link to."""
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in links(index.read_text(encoding="utf-8"))}
    return sorted(path.name for path in wanted if path.resolve() not in linked)


@functools.cache
def source_files():
    try:
        names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *SOURCE_FOLDERS], cwd=ROOT, check=True, capture_output=True,
                               text=True).stdout.splitlines()
    except (subprocess.CalledProcessError, FileNotFoundError):  # a source archive
        names = [str(path.relative_to(ROOT)) for folder in SOURCE_FOLDERS for path in (ROOT / folder).rglob("*")]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


@functools.cache
def sources():
    """The text of all code, for looking up names. Documents are not code."""
    suffixes = {".cpp", ".h", ".py", ".cmake", ".txt", ""}
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in source_files()
                     if path.suffix in suffixes and path.parent != ROOT / "tests/project")


@functools.cache
def cmake_words():
    return set(re.findall(r"\w+", "\n".join(path.read_text(encoding="utf-8") for path in source_files() if path.name == "CMakeLists.txt")))


@functools.cache
def words():
    return set(re.findall(r"\w+", sources()))


@functools.cache
def called_or_defined():
    return set(re.findall(r"(\w+)\(", sources())) | set(re.findall(r"(\w+)<[^<>()\n]*>\(", sources()))


def missing_of(code):
    """What a piece of code in a document names and the tree does not have."""
    missing = []
    for word in code.split():
        path = word.rstrip(".,:;").split("'")[0]
        if path.split("/")[0] in SOURCE_FOLDERS and "/" in path and not (ROOT / path).exists():
            missing.append(path)
    for regex in re.findall(r"-R '\^([^']*)\$'", code):
        missing += [name for name in re.findall(r"\w+", regex) if not {name, name.removeprefix("cli_")} & cmake_words() and name != "cli_"]
    for names in re.findall(r"--target ([\w ]+)", code):
        missing += [name for name in names.split() if name not in cmake_words()]
    if re.fullmatch(r"[\w-]+\.(cpp|h|py|txt|cmake)", code) and not any(path.name == code for path in source_files()):
        missing.append(code)
    function = re.fullmatch(r"(?:\w+::)*(\w+)\(\)", code)
    if function and function[1] not in called_or_defined() or re.fullmatch(r"k?[A-Z]\w+", code) and code not in words():
        missing.append(code)
    return missing


def missing_names(text):
    codes = re.findall(r"`([^`\n]+)`", without_code(text))
    codes += [line.split("#")[0].strip() for line in re.findall(r"(?m)^    (\S.*)$", text)]
    return sorted({name for code in codes for name in missing_of(code)})


class Links(unittest.TestCase):
    def test_lead_somewhere(self):
        self.assertEqual(broken_links(ROOT), [])

    def test_broken_ones_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/a.md", "examples/README.md"):
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text("# From C++, `x` & co\n\n## Twice\n\n## Twice\n")
            (root / "README.md").write_text("[a](docs/a.md#from-c-x--co) [b](docs/b.md) [c](docs/a.md#no) [d](#top) `[e](f)`\n\n# Top\n\n"
                                            "    [code](nowhere.md)\n\n[g](docs/a.md#twice-1) [h](https://example.org/x)\n")
            self.assertEqual(broken_links(root), ["README.md: no file docs/b.md", "README.md: no heading docs/a.md#no"])


class Index(unittest.TestCase):
    def test_has_every_page(self):
        index = DOCS / "index.md"
        wanted = [path for path in DOCS.glob("*.md") if path != index]
        self.assertGreater(len(wanted), 10)
        self.assertEqual(not_linked(index, wanted), [])

    def test_missing_pages_are_found(self):
        self.assertIn("hacking.md", not_linked(DOCS / "api.md", DOCS.glob("*.md")))

    def test_api_has_every_header(self):
        headers = list((ROOT / "include/halftone").rglob("*.h"))
        self.assertGreater(len(headers), 10)
        self.assertEqual(not_linked(DOCS / "api.md", headers), [])


class Programs(unittest.TestCase):
    def test_programs_are_the_examples(self):
        for page, example in (("tokenizer.md", "tokenize.cpp"), ("generate.md", "generate.cpp"), ("chat.md", "chat.cpp")):
            with self.subTest(page):
                (program,) = re.findall(r"(?ms)^```cpp\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"))
                self.assertEqual(program, (ROOT / "examples" / example).read_text(encoding="utf-8"))


class Hacking(unittest.TestCase):
    def test_names_what_exists(self):
        text = (DOCS / "hacking.md").read_text(encoding="utf-8")
        self.assertGreater(len(re.findall(r"`src/[\w./]+`", text)), 40)
        self.assertEqual(missing_names(text), [])

    def test_what_does_not_exist_is_found(self):
        text = ("`src/base/json.cpp` `src/base/jason.cpp` `choose_kernel()` `choose_colonel()` `norm.cpp` `norman.cpp` `kTable` `kChair` "
                "`scripts/lint --all` `scripts/lent --all` `ctest -R '^(norm_test|norman_test|cli_lists)$'` `cmake --target norm_test abnorm_test`\n"
                "\n    .venv/bin/cmake --build x --target tests_of_nothing   # comment\n")
        self.assertEqual(missing_names(text), ["abnorm_test", "choose_colonel()", "kChair", "norman.cpp", "norman_test", "scripts/lent",
                                               "src/base/jason.cpp", "tests_of_nothing"])


if __name__ == "__main__":
    unittest.main()
