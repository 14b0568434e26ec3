"""What the tests of tokenizers share: texts, tokenizers trained by the `tokenizers` package, and our own program's answers."""
import array
import json
import pathlib
import random
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORTUNES = pathlib.Path("/usr/share/games/fortunes")
SPACE_MARK = "▁"

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")

# What regular expressions and normalizers stumble over. Strings of a random few of them are texts.
PIECES = ["'s", "'S", "'ll", "'LL", "'Re", "'ſ", "'", "’s", " ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\r", "\t", " \n ", "\u00a0",
          "\u3000", "\u2028", "\u0085", "\u200b", "\u200d", "\ufeff", "a", "Hello", "world", "the", "1", "23", "4567", "89012", "²", "½", "Ⅷ",
          "٣", "é", "e\u0301", "a\u0323\u0302", "ﬁ", "Å", "Å", "가", "\u1100\u1161\u11a8", "中", "文字", "かな", "カナ", "Привет", "ΣΑΣ", "مرحبا",
          "हिन्दी", "ไทย", "🙂", "👩‍👩‍👧", "🇩🇪", "👍🏽", "_", "-", "...", "?!", "<s>", "</s>", "<|x|>", " <|x|> ", "[MASK]", "▁", "Ġ", "<0x0A>",
          "http://a.b/c?d=e", "x_1", "İI", "ß", "\x00", "\x1b", "\ufffd", "\ue000", "𝒜", "ǅ"]
SCRIPTS = [(0x20, 0x7F), (0xA0, 0x250), (0x300, 0x370), (0x370, 0x530), (0x590, 0x700), (0x900, 0xD80), (0xE00, 0x1100), (0x1100, 0x1200),
           (0x1E00, 0x2070), (0x2070, 0x2C00), (0x3000, 0x3100), (0x4E00, 0x5200), (0xAC00, 0xAE00), (0xF900, 0xFE00), (0xFF00, 0xFFF0),
           (0x1D400, 0x1D500), (0x1F300, 0x1FB00), (0x20000, 0x20100), (0xE0000, 0xE0100)]


def real_lines():
    """Lines of fortunes and of this repository's own sources."""
    files = [path for path in sorted(FORTUNES.glob("*")) if path.suffix == ""] if FORTUNES.is_dir() else []
    for folder in ("src", "docs", "tests", "include"):
        files += [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".cpp", ".h", ".md", ".py") and path.is_file()]
    for path in files:
        yield from path.read_bytes().decode("utf-8", "replace").splitlines(keepends=True)


def made_lines(count, seed=1):
    """Corner cases, several scripts, and bytes that are no UTF-8. Each is `bytes`."""
    chance = random.Random(seed)
    for i in range(count):
        if i % 3 == 0:
            yield "".join(chance.choices(PIECES, k=chance.randint(1, 12))).encode()
        elif i % 3 == 1:
            first, last = chance.choice(SCRIPTS)
            yield "".join(chr(chance.randrange(first, last)) for _ in range(chance.randint(1, 30))).encode("utf-8", "replace")
        else:
            text = bytearray("".join(chance.choices(PIECES, k=8)).encode())
            for _ in range(3):
                text[chance.randrange(len(text))] = chance.randrange(256)
            yield bytes(text)


def texts(count, seed=1):
    """`count` texts, two thirds of them real lines, some of these joined to paragraphs."""
    real = list(real_lines())
    chance = random.Random(seed)
    chance.shuffle(real)
    wanted = min(len(real), 2 * count // 3)
    lines = [line.encode() for line in real[: wanted - wanted // 10]]
    for i in range(wanted // 10):
        lines.append("".join(real[5 * i: 5 * i + 5]).encode())
    return [b"", b" ", b"\n", *lines, *made_lines(count - len(lines), seed)]


def write_texts(path, items):
    with open(path, "wb") as out:
        for item in items:
            out.write(len(item).to_bytes(4, "little") + item)


def answers(program, tokenizer, text_file, out, *words):
    """For each text: its ids, and what they decode to with and without special tokens."""
    done = subprocess.run([program, tokenizer, text_file, out, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    data, at, rows = out.read_bytes(), 0, []

    def number():
        nonlocal at
        at += 4
        return int.from_bytes(data[at - 4: at], "little")

    def content(length):
        nonlocal at
        at += length
        return data[at - length: at]

    while at < len(data):
        ids = array.array("I", content(4 * number())).tolist()
        rows.append((ids, content(number()).decode(), content(number()).decode()))
    return rows


def compare(test, program, tokenizer, items, folder, name, **options):
    """Our ids and texts are those of the `tokenizers` package, for tokenizer as our program reads it."""
    path = folder / (name + ".json")
    tokenizer.save(str(path))
    write_texts(folder / "texts", items)
    words = [word for word, wanted in (("no-special", options.get("no_special")), ("no-parse", options.get("no_parse"))) if wanted]
    ours = answers(program, path, folder / "texts", folder / (name + ".out"), *words)
    tokenizer.encode_special_tokens = bool(options.get("no_parse"))
    # One by one: a batch would be encoded by all cores.
    theirs = [tokenizer.encode(item.decode("utf-8", "replace"), add_special_tokens=not options.get("no_special")).ids for item in items]
    test.assertEqual(len(ours), len(items))
    wrong = []
    for item, (ids, all_text, plain_text), expected in zip(items, ours, theirs):
        if ids != expected:
            wrong.append((name, "ids", item, ids, expected))
        elif all_text != tokenizer.decode(ids, skip_special_tokens=False):
            wrong.append((name, "text", item, all_text, tokenizer.decode(ids, skip_special_tokens=False)))
        elif plain_text != tokenizer.decode(ids):
            wrong.append((name, "plain text", item, plain_text, tokenizer.decode(ids)))
    test.assertEqual(wrong[:3], [], f"{len(wrong)} of {len(items)} texts differ")
    return sum(len(ids) for ids, _, _ in ours)


def changed(tokenizer, change):
    """The tokenizer after change(document) of its JSON."""
    import tokenizers

    document = json.loads(tokenizer.to_str())
    change(document)
    return tokenizers.Tokenizer.from_str(json.dumps(document))
