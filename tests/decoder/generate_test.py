"""halftone generate on a small GGUF file, beside PyTorch's operators on the same weights.

    generate_test.py HALFTONE [TEST…]
"""
import json
import os
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
PROMPT = "The house stood"


def call(*arguments, stdin=None, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HALFTONE_TEMP")}
    return subprocess.run([HALFTONE, "generate", *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False,
                          input=stdin if stdin is not None else "", env={**environment, **variables})


class Generate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="halftone_generate_"))
        cls.weights = tiny_llama.make_weights(tied=True)
        cls.model = cls.folder / "tiny.gguf"
        tiny_llama.write(cls.model, cls.weights)

    def report(self, *arguments, **options):
        done = call(*arguments, "--json", **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def fails(self, code, words, *arguments, **options):
        done = call(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("halftone: error: "), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def greedy(self, model, *arguments):
        return self.report(model, "-p", PROMPT, "-n", 40, "--temp", 0, "--logprobs", *arguments)

    def test_greedy_tokens_and_probabilities_are_pytorchs(self):
        for tied in (True, False):
            weights = self.weights if tied else tiny_llama.make_weights(tied=False, seed=9)
            path = self.folder / f"tied_{tied}.gguf"
            tiny_llama.write(path, weights)
            expected, logprobs = tiny_llama.greedy(weights, PROMPT.encode(), 40)
            report = self.greedy(path, "--scheme", "noquant")
            self.assertEqual(report["tokens"], expected)
            self.assertLess(max(abs(a - b) for a, b in zip(report["logprobs"], logprobs, strict=True)), 1e-4)
            self.assertEqual(report["prompt_tokens"], len(PROMPT))
            text = bytes(token for token in expected if token != tiny_llama.END).decode(errors="replace")
            self.assertEqual(report["text"], text)

    def test_quantized_file_runs_on_its_dequantized_weights(self):
        types = {name: gguf.GGMLQuantizationType.Q8_0 for name, tensor in self.weights.items() if tensor.dim() == 2 and tensor.shape[1] % 32 == 0}
        path = self.folder / "q8.gguf"
        tiny_llama.write(path, self.weights, types=types)
        rounded = {name: torch.from_numpy(gguf.quants.dequantize(gguf.quants.quantize(tensor.numpy(), types[name]), types[name])) if name in types
                   else tensor for name, tensor in self.weights.items()}
        expected, logprobs = tiny_llama.greedy(rounded, PROMPT.encode(), 40)
        report = self.greedy(path, "--scheme", "noquant")
        self.assertEqual(report["tokens"], expected)
        self.assertLess(max(abs(a - b) for a, b in zip(report["logprobs"], logprobs, strict=True)), 1e-4)

    def test_schemes_and_model_figures(self):
        report = self.greedy(self.model, "--scheme", "int8wo")
        model = report["model"]
        self.assertEqual((model["layers"], model["vocabulary"], model["context"], model["scheme"]),
                         (tiny_llama.LAYERS, tiny_llama.TOKENS, tiny_llama.CONTEXT, "int8wo"))
        self.assertEqual(model["parameters"], sum(tensor.numel() for tensor in self.weights.values()))
        self.assertLess(model["weight_bytes"], 2 * model["parameters"])

    def test_streams_text_and_says_how_fast(self):
        done = call(self.model, "-p", PROMPT, "-n", 20, "--temp", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.rstrip("\n"), self.report(self.model, "-p", PROMPT, "-n", 20, "--temp", 0)["text"].rstrip("\n"))
        self.assertIn("a second", done.stderr)

    def test_prompt_from_stdin_and_options_from_the_environment(self):
        expected = self.report(self.model, "-p", PROMPT, "-n", 12, "--temp", 0)["tokens"]
        self.assertEqual(self.report(self.model, "-n", 12, "--temp", 0, stdin=PROMPT)["tokens"], expected)
        self.assertEqual(self.report(self.model, "-p", "-", "-n", 12, stdin=PROMPT, HALFTONE_TEMP="0")["tokens"], expected)
        self.assertEqual(self.report("-m", self.model, "-p", PROMPT, HALFTONE_PREDICT="12", HALFTONE_TEMP="0")["tokens"], expected)

    def test_seeds_and_threads(self):
        drawn = [self.report(self.model, "-p", PROMPT, "-n", 30, "--temp", 1.5, "-s", seed, "--threads", threads)["tokens"]
                 for seed, threads in ((1, 1), (1, 2), (2, 1))]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])

    def test_ends(self):
        whole = self.report(self.model, "-p", PROMPT, "-n", 1000, "--temp", 0)
        self.assertIn(whole["stop_reason"], ("context full", "end of text"))
        if whole["stop_reason"] == "context full":
            self.assertEqual(whole["prompt_tokens"] + len(whole["tokens"]), tiny_llama.CONTEXT + 1)
        text = whole["text"]
        stop = text[5:8]
        stopped = self.report(self.model, "-p", PROMPT, "-n", 1000, "--temp", 0, "--stop", stop)
        self.assertEqual((stopped["text"], stopped["stop_reason"]), (text[: text.index(stop)], "stop text"))
        none = self.report(self.model, "-p", PROMPT, "-n", 0)
        self.assertEqual((none["tokens"], none["text"]), ([], ""))

    def test_says_how_much_memory_is_missing(self):
        path = self.folder / "long.gguf"
        tiny_llama.write(path, self.weights, context=1 << 30)
        self.fails(1, ["loading takes", "a KV cache of 1073741824 tokens", "are free"], path, "-p", "x", "-c", str(1 << 30))

    def test_wrong_command_lines(self):
        self.fails(2, ["MODEL is missing"])
        self.fails(2, ['unknown scheme "int9"', "int8wo"], self.model, "-p", "x", "--scheme", "int9")
        self.fails(2, ["--temp"], self.model, "-p", "x", "--temp", "-1")
        self.fails(2, ["--top-p"], self.model, "-p", "x", "--top-p", "2")
        self.fails(2, ["--tempp", "--temp"], self.model, "-p", "x", "--tempp", "1")
        self.fails(1, ["prompt", "empty"], self.model, "-p", "")
        self.fails(1, ["98 tokens do not fit", "96"], self.model, "-p", "x" * 98)
        self.fails(1, ["context", "96"], self.model, "-p", "x", "-c", "97")
        self.fails(1, ["nothing.gguf", "No such file"], self.folder / "nothing.gguf", "-p", "x")
        self.fails(1, ["generate_test.py"], __file__, "-p", "x")

    def test_files_that_do_not_fit(self):
        def changed(name, **options):
            weights = dict(self.weights)
            for key, value in options.pop("weights", {}).items():
                weights.pop(key) if value is None else weights.update({key: value})
            path = self.folder / f"{name}.gguf"
            tiny_llama.write(path, weights, **options)
            return path

        # Each with the words that the message must have.
        files = {
            changed("arch", architecture="mamba"): ["mamba", "llama", "qwen3"],
            changed("missing", weights={"blk.1.ffn_up": None}): ["blk.1.ffn_up.weight is missing"],
            changed("extra", weights={"blk.0.attn_sinks": torch.zeros(4)}): ["blk.0.attn_sinks.weight is not known"],
            changed("shape", weights={"blk.2.ffn_down": torch.zeros(8, 8)}): ["blk.2.ffn_down.weight is [8, 8], not [32, 72]"],
            changed("scaled", metadata=lambda out: out.add_rope_scaling_type(gguf.RopeScalingType.YARN)): ["rope.scaling.type"],
            changed("experts", metadata=lambda out: out.add_expert_count(8)): ["expert_count"],
            changed("key_length", metadata=lambda out: out.add_uint32("llama.attention.key_length", 2)): ["rope.dimension_count"],
            changed("window", metadata=lambda out: out.add_sliding_window(1 << 31)): ["sliding_window"],
            changed("longrope", weights={"rope_factors_long": torch.ones(4)}): ["rope_factors_long.weight", "longrope"],
            changed("factors", weights={"rope_freqs": torch.ones(5)}): ["rope_freqs.weight"],
        }
        for path, words in files.items():
            with self.subTest(path.name):
                self.fails(1, [path.name, *words], path, "-p", "x")


if __name__ == "__main__":
    if gguf is None:
        print("generate_test: skipped, the Python package gguf is not usable here: nothing writes GGUF files")
        sys.exit(77)
    unittest.main()
