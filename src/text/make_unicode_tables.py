#!/usr/bin/env python3
"""Writes unicode_tables.inc, what tokenizers need to know of characters.

The `tokenizers` package takes its classes from several libraries, whose versions of Unicode differ: 8 for BERT's, 16 for regular
expressions. Ours must not differ from it, so this script asks the package about each character; what cannot be asked comes from
Python's unicodedata. The file is committed; run this only to follow a newer package.
"""
import pathlib
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

OUTPUT = pathlib.Path(__file__).resolve().parent / "unicode_tables.inc"
HANGUL = range(0xAC00, 0xD7A4)  # decomposed and composed by arithmetic, not by table
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
# The property White_Space, of which unicodedata knows nothing.
SPACES = {*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
# The bits of CharClass in unicode.h.
LETTER, NUMBER, SPACE, MARK, NON_SPACING, PUNCTUATION, OTHER, WORD = (1 << i for i in range(8))
LETTERS, NUMBERS = (pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in (r"\p{L}", r"\p{N}"))
WORDS, BERT = pre_tokenizers.Whitespace(), pre_tokenizers.BertPreTokenizer()
CLEAN = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
WITHOUT_MARKS = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
NFC, NFD, NFKD = normalizers.NFC().normalize_str, normalizers.NFD().normalize_str, normalizers.NFKD().normalize_str
LAST_MARK = "\u0345"  # its class, 240, is the highest


def pieces(step, text):
    return len(step.pre_tokenize_str(text))


def classes(c):
    text = chr(c)
    bits = LETTER if pieces(LETTERS, f".{text}.") == 3 else NUMBER if pieces(NUMBERS, f".{text}.") == 3 else 0
    bits |= SPACE if c in SPACES else 0
    bits |= MARK if normalizers.StripAccents().normalize_str(text) == "" else 0
    bits |= NON_SPACING if WITHOUT_MARKS.normalize_str(text) == "" else 0
    bits |= PUNCTUATION if c not in SPACES and pieces(BERT, f"a{text}b") == 3 else 0
    bits |= OTHER if unicodedata.category(text) in ("Cc", "Cf", "Co") and (c in (9, 10, 13) or CLEAN.normalize_str(text) == "") else 0
    return bits | (WORD if pieces(WORDS, f"a{text}b") == 1 else 0)


def combining(c):
    """Marks that the package does not know stay where they are."""
    known = NFD("a" + LAST_MARK + chr(c)) == "a" + chr(c) + LAST_MARK or chr(c) == LAST_MARK
    return unicodedata.combining(chr(c)) if known else 0


def runs(value_of):
    """[first, last, value] of neighbours with one value that is not 0."""
    found = []
    for c in CODE_POINTS:
        value = value_of(c)
        if not value:
            continue
        if found and found[-1][1] == c - 1 and found[-1][2] == value:
            found[-1][1] = c
        else:
            found.append([c, c, value])
    return found


def lower_runs():
    """[first, last, stride, delta]: the characters whose lower case is one other character."""
    found = []
    for c in CODE_POINTS:
        lower = normalizers.Lowercase().normalize_str(chr(c))
        if lower == chr(c) or len(lower) != 1:  # U+0130 has two, which unicode.cpp knows
            continue
        delta, last = ord(lower) - c, found[-1] if found else None
        step = c - last[1] if last else 0
        if last and delta == last[3] and step in (1, 2) and (last[0] == last[1] or step == last[2]):
            last[1], last[2] = c, step
        else:
            found.append([c, c, 1, delta])
    return found


def decompositions():
    """[from, count and kind, offset] into one list of characters. Kind 1 is a compatibility decomposition. Both are complete."""
    rows, parts = [], []
    for c in CODE_POINTS:
        if c in HANGUL:
            continue
        for kind, form in enumerate((NFD, NFKD)):
            text = form(chr(c))
            if text == chr(c) or (kind == 1 and text == NFD(chr(c))):
                continue
            rows.append([c, len(text) << 1 | kind, len(parts)])
            parts += [ord(x) for x in text]
    return rows, parts


def compositions():
    """[first, second, both]: what NFC puts together; excluded characters are not composed."""
    rows = []
    for c in CODE_POINTS:
        parts = unicodedata.decomposition(chr(c))
        if c in HANGUL or not parts or parts[0] == "<":
            continue
        both = [int(part, 16) for part in parts.split()]
        if len(both) == 2 and NFC("".join(map(chr, both))) == chr(c):
            rows.append([*both, c])
    return sorted(rows)


def table(declaration, rows):
    lines, line = [], " "
    for row in rows:
        cell = "{" + ",".join(str(c) for c in row) + "}" if isinstance(row, list) else str(row)
        if len(line) + len(cell) + 2 > 150:
            lines.append(line)
            line = " "
        line += f" {cell},"
    return "\n".join([f"constexpr {declaration}[] = {{", *lines, line, "};", ""])


def main():
    rows, parts = decompositions()
    OUTPUT.write_text("\n".join([
        f"// Made by make_unicode_tables.py with tokenizers {tokenizers.__version__} and Unicode {unicodedata.unidata_version}. Do not edit.",
        table("ClassRun kClassRuns", runs(classes)),
        table("ClassRun kCombiningRuns", runs(combining)),
        table("LowerRun kLowerRuns", lower_runs()),
        table("Decomposition kDecompositions", rows),
        table("char32_t kDecomposed", parts),
        table("Composition kCompositions", compositions()),
    ]).rstrip("\n") + "\n")


if __name__ == "__main__":
    main()
