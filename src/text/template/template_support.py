"""What the tests of templates share: jinja2 as transformers sets it up, our own program's answers, conversations."""
import datetime
import json
import pathlib
import subprocess
import tempfile
import unittest

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

NOW = 1_720_000_000


class Generation(jinja2.ext.Extension):
    """{% generation %} … {% endgeneration %}: transformers notes where the text is; what is rendered is the text."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_rendered"), [], [], body).set_lineno(line)

    @staticmethod
    def _rendered(caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: datetime.datetime.fromtimestamp(NOW).strftime(form)
    return made


ENVIRONMENT = environment()


def jinja_outcome(text, variables):
    """What jinja2 renders; None for an error."""
    try:
        return ENVIRONMENT.from_string(text).render(**variables)
    except Exception:  # pylint: disable=broad-except  # a template fails with whatever Python raises
        return None


def our_outcomes(program, cases):
    with tempfile.TemporaryDirectory() as folder:
        source, out = pathlib.Path(folder) / "cases.json", pathlib.Path(folder) / "out.json"
        source.write_text(json.dumps([{"template": text, "variables": variables, "now": NOW} for text, variables in cases]))
        done = subprocess.run([program, source, out], capture_output=True, text=True, check=False, timeout=300)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return json.loads(out.read_text())


class Templates(unittest.TestCase):
    program = None

    def compare(self, cases, may_be_unsupported=False):
        """How many cases give the same text, and how many an error in both. Fails for any other."""
        same, refused, unsupported, wrong = 0, 0, 0, []
        for (text, variables), ours in zip(cases, our_outcomes(self.program, cases), strict=True):
            theirs = jinja_outcome(text, variables)
            if theirs is not None and ours.get("text") == theirs:
                same += 1
            elif theirs is None and "error" in ours:
                refused += 1
            elif may_be_unsupported and ours.get("code") == "unsupported":
                unsupported += 1
            else:
                wrong.append((text, ours, theirs))
        print(f"{self.id().rsplit('.', 1)[-1]}: {len(cases)} cases, {same} the same, {refused} refused by both, {unsupported} not supported")
        self.assertEqual(wrong[:5], [], f"{len(wrong)} of {len(cases)} differ")
        return same, refused


TOOLS = [{"type": "function", "function": {"name": "weather", "description": "The weather \"there\" & <now>", "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "enum": ["Kiel", "Würzburg"]}, "days": {"type": "integer"}},
    "required": ["place"]}}}]
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "call00001", "type": "function", "function": {
    "name": "weather", "arguments": {"place": "Kiel", "days": 2, "share": 0.5, "now": True, "note": None}}}]}


def conversation(messages, **more):
    return {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>", **more}


def turns(*contents, system=None):
    start = [{"role": "system", "content": system}] if system is not None else []
    return start + [{"role": ("user", "assistant")[i % 2], "content": content} for i, content in enumerate(contents)]


CONVERSATIONS = [
    conversation(turns("Hello")),
    conversation(turns("Hello", "Hi, how can I help?", "What is 2 + 2?")),
    conversation(turns("Hello", "Hi"), add_generation_prompt=False),
    conversation(turns("Hello", "Hi", "Why?", system="Answer in one sentence.")),
    conversation(turns("  white space \n", "\n\nboth\t ends ", "\u00a0x\u3000", system=" \n ")),
    conversation(turns("quotes ' \" \\ {{ x }} {% if %} <b>&amp;</b>", "tabs\tand\r\nlines", "日本語 👩‍👩‍👧 é ﬁ İ", system="Ünïcödé")),
    conversation(turns("", "", "", system="")),
    conversation(turns("Count", "<think>\nOne, two.\n</think>\n\nThree.", "More", "<think></think>Four", "Again")),
    conversation(turns("Hello", system="/no_think Be brief."), enable_thinking=False),
    conversation(turns("Hello /think", system="/system_override Me."), enable_thinking=True, reasoning_effort="low"),
    conversation([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]),
    conversation([{"role": "assistant", "content": "first"}, {"role": "user", "content": "b"}]),
    conversation([{"role": "robot", "content": "x"}]),
    conversation([]),
    conversation([{"role": "system", "content": "Only this."}]),
    conversation([{"role": "user", "content": [{"type": "text", "text": "What is this? "}, {"type": "image", "url": "x"}, {"type": "text", "text": "And this?"}]}]),
    conversation(turns("Weather?"), tools=TOOLS),
    conversation([*turns("Weather?", system="Help."), CALL, {"role": "tool", "name": "weather", "content": "{\"sky\": \"grey\"}", "tool_call_id": "call00001"},
                  {"role": "tool", "content": "second", "tool_call_id": "call00001"}, {"role": "assistant", "content": "It is grey."},
                  {"role": "user", "content": "Thanks"}], tools=TOOLS * 2),
    conversation([*turns("Hm"), {"role": "assistant", "content": "So.", "reasoning_content": "I think.\n"}, {"role": "user", "content": "Go on"}],
                 date_string="1 May 2025", documents=[{"title": "T", "text": "Long."}]),
]
