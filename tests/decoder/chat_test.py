"""halftone chat on a small GGUF file: a turn computes only its own tokens and says what a new sequence over the whole conversation says.

    chat_test.py HALFTONE [TEST…]
"""
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import tiny_llama

try:
    import gguf
except ImportError:
    gguf = None

HALFTONE = str(pathlib.Path(sys.argv.pop(1)).resolve())
TEMPLATE = "{% for m in messages %}{{ '[' + m.role[0] + ']' + m.content }}{% endfor %}{{ '[a]' if add_generation_prompt }}"


def prompt_of(turns):
    """What TEMPLATE makes of them. Bytes are the model's tokens, so its length is their number."""
    return "".join(f"[{role[0]}]{content}" for role, content in turns) + "[a]"


def call(*arguments, stdin=""):
    return subprocess.run([HALFTONE, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False, input=stdin,
                          env={name: value for name, value in os.environ.items() if not name.startswith("HALFTONE_")})


class WithModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="halftone_chat_"))
        # Answers are printable ASCII: the logits of all other tokens are zero.
        cls.weights = tiny_llama.make_weights(tied=False, seed=3)
        cls.weights["output"][:32] = 0
        cls.weights["output"][127:] = 0
        cls.model = cls.write("tiny")

    @classmethod
    def write(cls, name, template=TEMPLATE, weights=None, metadata=None, **options):
        def add(out):
            if template is not None:
                out.add_chat_template(template)
            if metadata:
                metadata(out)

        path = cls.folder / f"{name}.gguf"
        tiny_llama.write(path, weights or cls.weights, metadata=add, **options)
        return path

    def ok(self, *arguments, **options):
        done = call(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def fails(self, code, words, *arguments, **options):
        done = call(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn("halftone: error: ", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def answers(self, lines, *arguments, model=None):
        done = self.ok("chat", model or self.model, "--json", "--temp", 0, *arguments, stdin="".join(line + "\n" for line in lines))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def fresh(self, turns, *arguments):
        """A new sequence over a whole conversation."""
        return json.loads(self.ok("generate", self.model, "-p", prompt_of(turns), "--json", "--temp", 0, *arguments).stdout)


class Chat(WithModel):
    def test_a_turn_computes_only_its_own_tokens(self):
        for scheme in ("noquant", "int8dq"):
            options, said = ("-n", 9, "--scheme", scheme), ["Hi", "Why so?", "Ah"]
            answers = self.answers(said, *options)
            self.assertEqual(len(answers), 3)
            turns, in_cache = [], 0
            for line, answer in zip(said, answers):
                turns.append(("user", line))
                expected = self.fresh(turns, *options)
                self.assertEqual((answer["tokens"], answer["text"]), (expected["tokens"], expected["text"]))
                self.assertEqual(len(answer["text"]), 9)
                self.assertEqual((answer["prompt_tokens"], answer["reused_tokens"]), (len(prompt_of(turns)), in_cache))
                in_cache = len(prompt_of(turns)) + 8  # the last token was drawn and not computed
                turns.append(("assistant", answer["text"]))

    def test_system_prompt(self):
        answer, = self.answers(["Hi"], "-n", 9, "--system", "Be brief.")
        expected = self.fresh([("system", "Be brief."), ("user", "Hi")], "-n", 9)
        self.assertEqual((answer["tokens"], answer["prompt_tokens"]), (expected["tokens"], len("[s]Be brief.[u]Hi[a]")))

    def test_commands(self):
        first, second, again = self.answers(["Hi", "", "More\r", "/clear", "Hi", "/exit", "Never"], "-n", 6)
        self.assertEqual(second["prompt_tokens"], len(prompt_of([("user", "Hi"), ("assistant", first["text"]), ("user", "More")])))
        self.assertEqual((again["text"], again["prompt_tokens"]), (first["text"], first["prompt_tokens"]))
        self.assertGreater(again["reused_tokens"], 0)  # the same question: only its last token is computed

    def test_text_on_stdout_figures_on_stderr(self):
        texts = [answer["text"] for answer in self.answers(["Hi", "Why?"], "-n", 9)]
        plain = self.ok("chat", self.model, "-n", 9, "--temp", 0, stdin="Hi\nWhy?")
        self.assertEqual((plain.stdout, plain.stderr), ("\n".join(texts) + "\n", ""))
        verbose = self.ok("chat", self.model, "-n", 9, "--temp", 0, "--verbose", stdin="Hi\nWhy?\n")
        self.assertEqual(verbose.stdout, plain.stdout)
        self.assertEqual(verbose.stderr.count("of answer in"), 2)
        self.assertIn("more were in the cache", verbose.stderr)

    def test_generate_chat_is_one_turn(self):
        answer, = self.answers(["Hi"], "-n", 9)
        report = json.loads(self.ok("generate", self.model, "--chat", "-p", "Hi", "-n", 9, "--temp", 0, "--json").stdout)
        self.assertEqual((report["tokens"], report["prompt_tokens"]), (answer["tokens"], len("[u]Hi[a]")))

    def test_ends_at_the_end_of_a_turn(self):
        whole, = self.answers(["Hi"], "-n", 9)
        end = whole["tokens"][4]
        first = whole["tokens"].index(end)
        named = self.write("named", metadata=lambda out: out.add_eot_token_id(end))
        ended, _ = self.answers(["Hi", "Go on"], "-n", 9, model=named)
        self.assertEqual((ended["tokens"], ended["stop_reason"]), (whole["tokens"][: first + 1], "end of text"))
        self.assertEqual(ended["text"], whole["text"][:first])
        # No end of the text is known, but the template writes <|end|> behind each answer.
        weights = {**self.weights, "output": self.weights["output"].clone()}
        weights["output"][tiny_llama.END] = 1.5 * weights["output"][end]
        closing = TEMPLATE.replace("m.content }}", "m.content }}{{ '<|end|>' if m.role == 'assistant' }}")
        path = self.write("by_template", template=closing, weights=weights)
        path.write_bytes(path.read_bytes().replace(b"tokenizer.ggml.eos_token_id", b"tokenizer.ggml.xxx_token_id"))
        ended, then = self.answers(["Hi", "Go on"], "-n", 9, model=path)
        self.assertEqual((ended["tokens"], ended["stop_reason"]), ([*whole["tokens"][:first], tiny_llama.END], "end of text"))
        self.assertEqual(then["prompt_tokens"], len("[u]Hi[a]") + first + 1 + len("[u]Go on[a]"))

    def test_full_context(self):
        said = ["One " * 5, "Two " * 5, "Three " * 3]
        first, second = self.answers(said[:2], "-n", 40)
        self.assertEqual((first["stop_reason"], second["stop_reason"]), ("max tokens", "context full"))
        self.assertEqual(second["prompt_tokens"] + len(second["tokens"]), tiny_llama.CONTEXT + 1)
        self.fails(1, ["does not fit into the context of 96", "context_shift"], "chat", self.model, "--temp", 0, "-n", 40,
                   stdin="".join(line + "\n" for line in said))
        self.fails(1, ["does not fit into the context of 96", "say less"], "chat", self.model, "--context-shift", stdin="x" * 100)

    def test_context_shift(self):
        options, said = ("-n", 30, "--context-shift"), ["One " * 4, "Two " * 4, "Three " * 3]
        answers = self.answers(said, *options)
        self.assertEqual([answer["stop_reason"] for answer in answers], ["max tokens"] * 3)
        self.assertGreater(sum(answer["dropped_messages"] for answer in answers), 0)
        # A turn that dropped others at its beginning is the same as in a new conversation.
        last = answers[2]
        self.assertEqual(last["dropped_messages"], 2)
        turns = [("user", said[1]), ("assistant", answers[1]["text"]), ("user", said[2])]
        turns = turns if last["prompt_tokens"] == len(prompt_of(turns)) else turns[2:]
        self.assertEqual(last["prompt_tokens"], len(prompt_of(turns)))
        self.assertEqual(last["tokens"], self.fresh(turns, "-n", 30)["tokens"])
        told = self.ok("chat", self.model, "--temp", 0, *options, stdin="".join(line + "\n" for line in said))
        self.assertIn("messages were dropped", told.stderr)

    def test_context_shift_within_an_answer(self):
        said = ["One " * 4, "Two"]
        first, second = self.answers(said, "-n", 50, "--context-shift", "-c", 96)
        self.assertEqual((len(first["tokens"]), len(second["tokens"])), (50, 50))
        self.assertEqual(second["dropped_messages"], 2)

    def test_templates(self):
        bare = self.write("bare", template=None)
        self.fails(1, ["bare.gguf", "no chat template"], "chat", bare, stdin="Hi\n")
        self.fails(1, ["bare.gguf", "no chat template"], "generate", bare, "--chat", "-p", "Hi")
        path = self.folder / "own.jinja"
        path.write_text(TEMPLATE)
        own, = self.answers(["Hi"], "-n", 9, "--chat-template-file", path, model=bare)
        theirs, = self.answers(["Hi"], "-n", 9)
        self.assertEqual(own["tokens"], theirs["tokens"])
        self.fails(1, ["nothing.jinja"], "chat", bare, "--chat-template-file", self.folder / "nothing.jinja", stdin="Hi\n")
        broken = self.write("broken", template="a\n{% for m in %}")
        self.fails(1, ["broken.gguf: chat template: line 2", "an expression was expected"], "chat", broken, stdin="Hi\n")
        self.fails(1, ["line 1", "the tag {% include %} is not supported"], "chat", self.write("more", template="{% include 'x' %}"), stdin="Hi\n")
        picky = self.write("picky", template="{{ raise_exception('No users here!') }}")
        self.fails(1, ["refuses these messages: No users here!"], "chat", picky, stdin="Hi\n")
        self.fails(1, ["makes no text"], "chat", self.write("silent", template="{# #}"), stdin="Hi\n")

    def test_wrong_command_lines(self):
        self.fails(2, ["MODEL is missing"], "chat")
        self.fails(2, ["--temp"], "chat", self.model, "--temp", "-1")
        self.fails(2, ['unknown scheme "int9"'], "chat", self.model, "--scheme", "int9")
        self.fails(2, ["--sytem", "--system"], "chat", self.model, "--sytem", "x")


class Terminal(WithModel):
    """At a terminal, which Ctrl-C reaches."""

    def setUp(self):
        # An answer that would take many seconds.
        long = self.write("long", context=40000)
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.execv(HALFTONE, [HALFTONE, "chat", str(long), "-c", "40000", "-n", "39000", "--temp", "0", "--json"])
        self.seen = ""

    def tearDown(self):
        os.close(self.terminal)

    def wait_for(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            self.assertTrue(ready, f"no {text!r} in {self.seen!r}")
            try:
                self.seen += os.read(self.terminal, 65536).decode()
            except OSError:  # the program has ended
                self.assertIn(text, self.seen)
        before, self.seen = self.seen.split(text, 1)
        return before

    def exit_code(self):
        _, status = os.waitpid(self.child, 0)
        return os.waitstatus_to_exitcode(status)

    def test_ctrl_c_ends_the_answer(self):
        self.wait_for("> ")
        os.write(self.terminal, b"Hi\n")
        time.sleep(1)
        os.kill(self.child, signal.SIGINT)
        report = self.wait_for("> ")
        self.assertIn('"stop_reason":"cancelled"', report)
        os.write(self.terminal, b"/clear\n")
        self.wait_for("a new conversation")
        self.wait_for("> ")
        os.write(self.terminal, b"/exit\n")
        self.assertEqual(self.exit_code(), 0)

    def test_ctrl_c_ends_the_program_when_nothing_is_answered(self):
        self.wait_for("> ")
        os.kill(self.child, signal.SIGINT)
        self.wait_for("interrupted")
        self.assertEqual(self.exit_code(), 130)


if __name__ == "__main__":
    if gguf is None:
        print("chat_test: skipped, the Python package gguf is not usable here: nothing writes GGUF files")
        sys.exit(77)
    unittest.main()
