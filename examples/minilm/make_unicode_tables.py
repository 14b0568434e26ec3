#!/usr/bin/env python3
"""Writes unicode_tables.inc, the character classes that BERT's text cleaning needs, from Python's own Unicode database.

The file is committed; run this only to move to another Unicode version.
"""
import pathlib
import unicodedata

OUTPUT = pathlib.Path(__file__).resolve().parent / "unicode_tables.inc"
HANGUL = range(0xAC00, 0xD7A4)  # decomposed by arithmetic, not by table
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
# Compatibility ideographs stand for one unified ideograph each: a thousand entries for characters that are hardly used.
COMPATIBILITY_IDEOGRAPHS = [*range(0xF900, 0xFB00), *range(0x2F800, 0x2FA20)]


def ranges(categories):
    """The ranges [first, last] of code points in some general categories."""
    found = []
    for c in CODE_POINTS:
        if unicodedata.category(chr(c)) not in categories:
            continue
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def folded(c):
    """Decomposed, without non-spacing marks, each character in lower case by itself."""
    decomposed = unicodedata.normalize("NFD", chr(c))
    return "".join(d.lower() for d in decomposed if unicodedata.category(d) != "Mn")


def foldings():
    """Runs [first, last, stride, delta] where one character becomes one, and [from, first, second] where it becomes two."""
    runs, pairs = [], []
    skipped = {*HANGUL, *COMPATIBILITY_IDEOGRAPHS}
    for c in CODE_POINTS:
        if c in skipped or unicodedata.category(chr(c)) == "Mn" or folded(c) == chr(c):
            continue
        text = [ord(x) for x in folded(c)]
        if len(text) == 2:
            pairs.append([c, *text])
            continue
        if len(text) != 1:  # musical symbols with three and more parts
            continue
        last = runs[-1] if runs else None
        step = c - last[1] if last else 0
        if last and text[0] - c == last[3] and step in (1, 2) and (last[0] == last[1] or step == last[2]):
            last[1], last[2] = c, step
        else:
            runs.append([c, c, 1, text[0] - c])
    return runs, pairs


def table(declaration, rows, format_row):
    lines, line = [], "   "
    for cell in map(format_row, rows):
        if len(line) + len(cell) + 2 > 110:
            lines.append(line)
            line = "   "
        line += f" {cell},"
    return "\n".join([f"constexpr {declaration}[] = {{", *lines, line, "};", ""])


def main():
    def plain(row):
        return "{" + ", ".join(f"0x{c:X}" for c in row) + "}"

    def run(row):
        return f"{{0x{row[0]:X}, 0x{row[1]:X}, {row[2]}, {row[3]}}}"

    runs, pairs = foldings()
    OUTPUT.write_text("\n".join([
        f"// Made by make_unicode_tables.py from Unicode {unicodedata.unidata_version}. Do not edit.",
        table("Range kPunctuation", ranges({"Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"}), plain),
        table("Range kNonSpacingMarks", ranges({"Mn"}), plain),
        table("Range kControls", ranges({"Cc", "Cf", "Co"}), plain),
        table("FoldRun kFoldRuns", runs, run),
        table("FoldPair kFoldPairs", pairs, plain),
    ]).rstrip("\n") + "\n")


if __name__ == "__main__":
    main()
