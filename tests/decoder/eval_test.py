"""halftone eval on small GGUF files, beside PyTorch's operators on the same weights.

    eval_test.py HALFTONE [TEST…]
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch

import tiny_llama

try:
    import gguf
except ImportError:
    gguf = None

HALFTONE = str(pathlib.Path(sys.argv.pop(1)).resolve())
TEXT = "The house stood at the end of a long road, and every evening a light was seen there.\n" * 3
WINDOW = 40


def call(*arguments):
    return subprocess.run([HALFTONE, "eval", *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)


def rows_of(weights, tokens):
    """Log-probabilities [counted, TOKENS] and the tokens that were counted, of one window."""
    return torch.log_softmax(tiny_llama.logits(weights, tokens[:-1])[WINDOW // 2 - 1:].double(), 1), torch.tensor(tokens[WINDOW // 2:])


def windows():
    tokens = list(TEXT.encode())
    return [tokens[begin:begin + WINDOW] for begin in range(0, len(tokens) - WINDOW + 1, WINDOW)]


def mean_with_interval(values):
    error = 1.96 * (values.var().item() / len(values)) ** 0.5
    return values.mean().item() - error, values.mean().item(), values.mean().item() + error


class Eval(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="halftone_eval_"))
        cls.text = cls.folder / "text.txt"
        cls.text.write_text(TEXT)
        cls.weights = [tiny_llama.make_weights(tied=True), tiny_llama.make_weights(tied=True, seed=6)]
        cls.models = [cls.folder / "a.gguf", cls.folder / "b.gguf"]
        for path, weights in zip(cls.models, cls.weights, strict=True):
            tiny_llama.write(path, weights)

    def report(self, *arguments):
        done = call(*arguments, "--text", self.text, "--window", WINDOW, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def fails(self, code, words, *arguments):
        done = call(*arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def assert_mean(self, found, expected, tolerance):
        for name, value in zip(("low", "value", "high"), expected, strict=True):
            self.assertAlmostEqual(found[name], value, delta=tolerance * abs(value))

    def test_perplexity_and_divergence_are_pytorchs(self):
        losses, divergences, same = [], [], []
        for window in windows():
            q, targets = rows_of(self.weights[0], window)
            p, _ = rows_of(self.weights[1], window)
            losses.append(-q.gather(1, targets.unsqueeze(1)).squeeze(1))
            divergences.append(torch.nn.functional.kl_div(q, p, log_target=True, reduction="none").sum(1))
            same.append((p.argmax(1) == q.argmax(1)).double())
        losses, divergences, same = map(torch.cat, (losses, divergences, same))
        report = self.report(self.models[0], "--scheme", "noquant", "--reference", self.models[1])
        self.assertEqual((report["windows"], report["counted_tokens"]), (len(windows()), len(losses)))
        self.assert_mean(report["perplexity"], map(math.exp, mean_with_interval(losses)), 1e-4)
        reference = report["reference"]
        self.assert_mean(reference["kl"], mean_with_interval(divergences), 1e-4)
        self.assertAlmostEqual(reference["max_kl"], divergences.max().item(), delta=1e-3)
        self.assertAlmostEqual(reference["same_first"]["value"], same.mean().item(), delta=1e-9)

    def test_a_model_does_not_diverge_from_itself(self):
        reference = self.report(self.models[0], "--scheme", "noquant", "--reference", self.models[0])["reference"]
        self.assertLess(reference["max_kl"], 1e-9)
        self.assertEqual(reference["same_first"]["value"], 1)

    def test_a_scheme_costs_something(self):
        costs = {scheme: self.report(self.models[0], "--scheme", scheme, "--reference", self.models[0])["reference"]["kl"]["value"]
                 for scheme in ("int8wo", "int4wo")}
        self.assertGreater(costs["int8wo"], 1e-9)
        self.assertGreater(costs["int4wo"], 3 * costs["int8wo"])

    def test_four_bits_of_a_file_are_kept(self):
        for name in ("Q4_0", "Q4_1"):
            kind = getattr(gguf.GGMLQuantizationType, name)
            types = {key: kind for key, tensor in self.weights[0].items() if key.startswith("blk.") and tensor.dim() == 2 and tensor.shape[1] % 32 == 0}
            self.assertGreater(len(types), 6 * tiny_llama.LAYERS - 1)
            path = self.folder / f"{name}.gguf"
            tiny_llama.write(path, self.weights[0], types=types)
            kl = {scheme: self.report(path, "--scheme", scheme, "--reference", path)["reference"]["kl"]["value"]
                  for scheme in ("file", "file-int8act", "bf16wo", "int4wo")}
            self.assertLess(kl["file"], 2 * kl["bf16wo"], name)  # only what is not 4-bit changes, to bfloat16
            self.assertLess(kl["file-int8act"], kl["int4wo"] / 10, name)
            self.assertGreater(kl["int4wo"], 100 * kl["file"], name)

    def test_begin_of_text_stands_in_each_window(self):
        def with_begin(out):
            out.add_bos_token_id(tiny_llama.END)
            out.add_add_bos_token(True)

        path = self.folder / "bos.gguf"
        tiny_llama.write(path, self.weights[0], metadata=with_begin)
        own = WINDOW - 1
        tokens, losses = list(TEXT.encode()), []
        for begin in range(0, len(tokens) - own + 1, own):
            q, targets = rows_of(self.weights[0], [tiny_llama.END, *tokens[begin:begin + own]])
            losses.append(-q.gather(1, targets.unsqueeze(1)).squeeze(1))
        report = self.report(path, "--scheme", "noquant")
        self.assert_mean(report["perplexity"], map(math.exp, mean_with_interval(torch.cat(losses))), 1e-4)

    def test_table_and_limits(self):
        done = call(self.models[0], "--text", self.text, "--window", WINDOW, "--windows", 1, "--reference", self.models[1], "--max-kl", 1e-6)
        self.assertEqual(done.returncode, 1)
        for words in ("perplexity", "KL divergence", "same first token", f"{WINDOW - WINDOW // 2} tokens in 1 window"):
            self.assertIn(words, done.stdout)
        self.assertIn("above --max-kl", done.stderr)
        self.assertEqual(call(self.models[0], "--text", self.text, "--window", WINDOW, "--max-perplexity", 1e9).returncode, 0)

    def test_wrong_arguments(self):
        model = self.models[0]
        self.fails(2, ["--text"], model)
        self.fails(2, ["--max-kl needs a --reference"], model, "--text", self.text, "--max-kl", 1)
        self.fails(2, ['unknown scheme "int9"'], model, "--text", self.text, "--scheme", "int9")
        self.fails(2, ["--window"], model, "--text", self.text, "--window", "0")
        self.fails(1, ["nothing.txt"], model, "--text", self.folder / "nothing.txt")
        self.fails(1, ["context", "97"], model, "--text", self.text, "--window", 97)
        short = self.folder / "short.txt"
        short.write_text("too short")
        self.fails(1, ["9 tokens", "40"], model, "--text", short, "--window", 40)

        other = self.folder / "other.gguf"
        weights = {name: torch.cat([tensor, tensor[:1]]) if name == "token_embd" else tensor for name, tensor in self.weights[0].items()}
        tiny_llama.write(other, weights)
        self.fails(1, ["258 tokens"], model, "--text", self.text, "--window", WINDOW, "--reference", other)


if __name__ == "__main__":
    if gguf is None:
        print("eval_test: skipped, the Python package gguf is not usable here: nothing writes GGUF files")
        sys.exit(77)
    unittest.main()
