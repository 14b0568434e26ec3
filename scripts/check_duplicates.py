#!/usr/bin/env python3
"""Finds function bodies that stand twice: the same code apart from names and literals.

    check_duplicates.py [--list]

Reads the C++ files of src/, include/, tools/, bench/ and examples/, tests beside their source included. Comments and
preprocessor lines are left out, every name and every literal counts as one token, and bodies of at least eight lines of
code are compared. Lambdas and local classes are part of the function around them.

scripts/duplicates.json lists the groups that are accepted, each with its reason, and `left`: how many surplus bodies
(those of a group but one) stand elsewhere. More than `left` is an error, and so is fewer: lower the number in the same
commit, so that it cannot grow again. An accepted group that no longer stands is an error too. --list prints all groups
that are not accepted.
"""
import argparse
import collections
import fnmatch
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "include", "tools", "bench", "examples")
MIN_LINES = 8

# Names that keep their meaning. All other identifiers are one token.
KEYWORDS = frozenset("""
    auto break case catch const constexpr continue default delete do dynamic_cast else for if new noexcept operator
    reinterpret_cast return static_cast switch this throw try typename using while true false nullptr
    bool char double float int unsigned void sizeof static template
""".split())
NOT_A_FUNCTION = ("decltype", "requires", "alignas", "__attribute__")
TOKEN = re.compile(r"""
    (?P<directive>^[ \t]*\#(?:[^\n\\]|\\.)*)
  | (?P<skip>\n|[^\S\n]+|//[^\n]*|/\*.*?\*/)
  | (?P<literal>(?:u8|[uUL])?R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"
      |(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+'|\.?\d(?:[eEpP][+-]|['.\w])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign>::|->|\+\+|--|<<=|[-+*/%&|^!=<>]=|&&|\|\||.)
""", re.VERBOSE | re.DOTALL | re.MULTILINE)

Token = collections.namedtuple("Token", "text line kind")
Body = collections.namedtuple("Body", "file line name lines shape")


def tokens(text):
    found, line = [], 1
    for match in TOKEN.finditer(text):
        if match.lastgroup in ("literal", "word", "sign", "tag"):
            kind = "literal" if match.group("literal") else match.lastgroup
            found.append(Token(match.group(), line, kind))
        line += match.group().count("\n")
    return found


def closing(found, start):
    """The index of the bracket that closes the one at `start`, or the end."""
    depth = 0
    for i in range(start, len(found)):
        if found[i].kind == "sign":
            if found[i].text in "([{":
                depth += 1
            elif found[i].text in ")]}":
                depth -= 1
                if depth == 0:
                    return i
    return len(found)


def function_name(head):
    """The name before the parameter list, "Suite.Case" of a gtest; "" if `head` declares no function."""
    i = 0
    while i < len(head):
        if head[i].text == "=" and (i == 0 or head[i - 1].text != "operator"):
            return ""
        if head[i].text != "(" or i == 0:
            i += 1
            continue
        end = closing(head, i)
        name = head[i - 1].text
        if name in ("TEST", "TEST_F", "TEST_P", "TYPED_TEST"):
            return ".".join(t.text for t in head[i + 1:end] if t.kind == "word")
        if name in KEYWORDS or name in NOT_A_FUNCTION:  # std::function<void()>, requires(…)
            i = end + 1
            continue
        if head[i - 1].kind != "word":
            operator = next((j for j in range(i - 1, -1, -1) if head[j].text == "operator"), None)
            return "" if operator is None else "".join(t.text for t in head[operator:i])
        return "~" + name if i > 1 and head[i - 2].text == "~" else name
    return ""


def shape_of(body):
    """The tokens with one name for all names, qualified ones too, and one literal for all literals."""
    names = {"word": "n", "literal": "l"}
    text = " ".join(t.text if t.text in KEYWORDS else names.get(t.kind, t.text) for t in body)
    return re.sub(r"(?:\bn|(?<!\S)) ?:: (?=n\b)", "", text)


def bodies(file, text):
    """The functions of a file, with those of its classes."""
    found, result = tokens(text), []
    i = head = 0
    while i < len(found):
        token = found[i]
        if token.kind != "sign":
            i += 1
        elif token.text in "([":
            i = closing(found, i) + 1
        elif token.text == "{":
            before = found[head:i]
            words = {t.text for t in before}
            name = function_name(before)
            if "namespace" in words or "extern" in words and not name:
                i += 1
                head = i
            elif not name and words & {"class", "struct", "union"}:
                i += 1
                head = i
            else:
                end = closing(found, i)
                inside_initialisers = name and any(t.text == ":" for t in before) and before[-1].kind == "word" and \
                    before[-1].text not in ("const", "noexcept", "override", "final", "try")
                if inside_initialisers:  # member{value} of a constructor: its body comes later
                    i = end + 1
                    continue
                if name:
                    body = found[i + 1:end]
                    lines = len({t.line for t in body})
                    result.append(Body(file, before[0].line, name, lines, shape_of(body)))
                i = end + 1
                head = i
        elif token.text in ";}":
            i += 1
            head = i
        else:
            i += 1
    return result


def groups(root, folders=FOLDERS, min_lines=MIN_LINES):
    """Lists of bodies that are alike, the longest first."""
    alike = collections.defaultdict(list)
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                for body in bodies(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")):
                    alike[body.shape].append(body)
    # Longer names may break a body into more lines than its copy: the longest one counts.
    found = (group for group in alike.values() if len(group) > 1 and max(body.lines for body in group) >= min_lines)
    return sorted(found, key=lambda group: (-group[0].lines, group[0].file, group[0].line))


def label(body):
    return f"{body.file}:{body.name}"


def accepted_by(group, entries):
    """The entry whose patterns take every body of the group, or None."""
    for entry in entries:
        if all(any(fnmatch.fnmatchcase(label(body), pattern) for pattern in entry["functions"]) for body in group):
            return entry
    return None


def describe(group):
    places = ", ".join(f"{body.file}:{body.line} {body.name}" for body in group)
    return f"{max(body.lines for body in group)} lines stand {len(group)} times: {places}"


def check(root, listed):
    """Problems as text, and the groups that are not accepted."""
    entries = listed["accepted"]
    problems = [f"accepted: {entry['functions']} has no reason" for entry in entries if not entry.get("reason", "").strip()]
    left, used = [], []
    for group in groups(root):
        entry = accepted_by(group, entries)
        if entry is None:
            left.append(group)
        else:
            used.append(id(entry))
    problems += [f"accepted: {entry['functions']} no longer stands twice; take it out" for entry in entries if id(entry) not in used]
    surplus = sum(len(group) - 1 for group in left)
    if surplus > listed["left"]:
        problems += [f"{surplus} function bodies stand twice, {listed['left']} are allowed; merge the new one:"]
        problems += ["  " + describe(group) for group in left]
    elif surplus < listed["left"]:
        problems.append(f"{surplus} function bodies stand twice; lower `left` from {listed['left']}")
    return problems, left


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="the tree to read")
    parser.add_argument("--accepted", type=pathlib.Path, default=ROOT / "scripts/duplicates.json")
    parser.add_argument("--list", action="store_true", help="print the groups that are not accepted")
    args = parser.parse_args()
    problems, left = check(args.root, json.loads(args.accepted.read_text(encoding="utf-8")))
    if args.list:
        for group in left:
            print(describe(group))
        print(f"{sum(len(group) - 1 for group in left)} surplus bodies in {len(left)} groups")
    for problem in problems:
        print(f"check_duplicates: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
