"""What docs/getting_started.md consists of for a test: files to save, commands, and the output that they promise."""
import dataclasses
import re

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SAVE_AS = re.compile(r"Save this as `([^`]+)`:\s*\Z")


@dataclasses.dataclass
class Step:
    """Either a file to save, or commands with what they should print."""
    line: int  # of the page
    section: str
    file: str = ""
    text: str = ""
    commands: list = dataclasses.field(default_factory=list)
    expected: str = None


def read_steps(page):
    """Refuses blocks that would not be run: a block of code is a file, commands, or the output of the commands before it."""
    steps, end = [], 0
    for block in FENCE.finditer(page):
        language, text = block.groups()
        before, line = page[end:block.start()], page[:block.start()].count("\n") + 1
        headings = re.findall(r"^## (.*)$", page[:block.start()], re.MULTILINE)
        section = headings[-1] if headings else ""
        name = SAVE_AS.search(before)
        if language == "sh":
            steps.append(Step(line, section, commands=commands_of(text)))
        elif language == "text":
            assert steps and steps[-1].commands and not before.strip(), f"line {line}: this output belongs to no commands"
            steps[-1].expected = text
        else:
            assert name, f"line {line}: say what this file is called: Save this as `NAME`:"
            steps.append(Step(line, section, file=name.group(1), text=text))
        end = block.end()
    return steps


def commands_of(text):
    """One for each line; a line that ends with a backslash goes on in the next."""
    return [line for line in re.sub(r"\\\n\s*", " ", text).splitlines() if line.strip()]


def output_pattern(expected):
    """A regular expression for all of the output. … stands for any text in a line, alone in a line for any lines. A number
    with a decimal point stands for any such number. The count of blanks, and blanks at the end of a line, mean nothing."""
    pattern = ""
    for line in expected.splitlines():
        pattern += r"(?:.*\n)*?" if line.strip() == "…" else line_pattern(line) + r"\n"
    return re.compile(pattern)


def line_pattern(line):
    pattern = ""
    for part in re.split(r"(…|\s+|-?\d+\.\d+(?:e[+-]?\d+)?)", line.rstrip()):
        if part == "…":
            pattern += ".*"
        elif part.isspace():
            pattern += "[ \t]+"
        elif re.fullmatch(r"-?\d+\.\d+(?:e[+-]?\d+)?", part):
            pattern += r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
        elif re.fullmatch(r"-{3,}", part):
            pattern += "-+"  # below a heading, as wide as its column
        else:
            pattern += re.escape(part)
    return pattern + "[ \t]*"


def difference(expected, output):
    """Where the output stops being what was promised: the last line of `expected` up to which all is well."""
    lines = expected.splitlines()
    for count in range(len(lines), 0, -1):
        if output_pattern("\n".join(lines[:count])).match(output):
            break
    else:
        count = 0
    return lines[count] if count < len(lines) else "(the end: there is more output)"
