"""Models in folders: the same answers as PyTorch's operators give on the same weights, and folders that are refused.

    folder_test.py HALFTONE DECODER_DUMP [TEST…]
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import torch
from safetensors.torch import load_file, save_file

import folders
import tiny_llama

HALFTONE, DUMP = (str(pathlib.Path(sys.argv.pop(1)).resolve()) for _ in range(2))
PROMPT = "The house stood"


def generate(*arguments):
    return subprocess.run([HALFTONE, "generate", *map(str, arguments), "--threads", "1"], capture_output=True, text=True, timeout=120, check=False)


class FolderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="halftone_folder_"))
        cls.weights = tiny_llama.make_weights(tied=False)
        cls.good = folders.write_tiny(cls.root / "good", cls.weights)
        cls.dump = folders.Dump(DUMP)

    @classmethod
    def tearDownClass(cls):
        cls.dump.close()
        shutil.rmtree(cls.root)


class Runs(FolderTest):
    def expect_pytorchs(self, folder, weights):
        tokens = list(PROMPT.encode())
        expected = tiny_llama.logits(weights, tokens)
        for pieces in ([len(tokens)], [1] * len(tokens), [4, 1, len(tokens) - 5]):
            found = self.dump.logits(folder, tokens, pieces, context=96)
            ends = torch.tensor(pieces).cumsum(0) - 1
            self.assertLess(float((found - expected[ends]).abs().max()), 1e-4)

    def test_one_file(self):
        self.expect_pytorchs(self.good, self.weights)
        tied = tiny_llama.make_weights(tied=True)
        self.expect_pytorchs(folders.write_tiny(self.root / "tied", tied), tied)

    def test_half_precision(self):
        for dtype in (torch.float16, torch.bfloat16):
            rounded = {name: tensor.to(dtype).float() for name, tensor in self.weights.items()}
            self.expect_pytorchs(folders.write_tiny(self.root / str(dtype), self.weights, dtype=dtype), rounded)

    def test_shards(self):
        names = sorted(folders.tiny_tensors(self.weights))
        shards = {f"model-{i + 1:05}-of-00003.safetensors": names[i::3] for i in range(3)}
        self.expect_pytorchs(folders.write_tiny(self.root / "shards", self.weights, shards=shards), self.weights)

    def test_links_of_hugging_faces_cache(self):
        cache = self.root / "models--tiny"
        (cache / "blobs").mkdir(parents=True)
        (cache / "snapshots/1234").mkdir(parents=True)
        for number, file in enumerate(sorted(self.good.iterdir())):
            shutil.copy(file, cache / "blobs" / str(number))
            os.symlink(f"../../blobs/{number}", cache / "snapshots/1234" / file.name)
        self.expect_pytorchs(cache / "snapshots/1234", self.weights)

    def test_generate(self):
        expected, logprobs = tiny_llama.greedy(self.weights, PROMPT.encode(), 40)
        for folder in (self.good, f"{self.good}/"):
            done = generate(folder, "-p", PROMPT, "-n", 40, "--temp", 0, "--logprobs", "--scheme", "noquant", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(done.stdout)
            self.assertEqual(report["tokens"], expected)
            self.assertLess(max(abs(a - b) for a, b in zip(report["logprobs"], logprobs, strict=True)), 1e-4)
            self.assertEqual((report["model"]["name"], report["model"]["architecture"]), ("good", "llama"))

    def test_an_answer_ends_at_any_of_the_end_ids(self):
        expected, _ = tiny_llama.greedy(self.weights, PROMPT.encode(), 12)
        folder = self.root / "ends"
        shutil.copytree(self.good, folder)
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [tiny_llama.END, expected[5]]}))
        report = json.loads(generate(folder, "-p", PROMPT, "-n", 12, "--temp", 0, "--scheme", "noquant", "--json").stdout)
        self.assertEqual(report["tokens"], expected[: expected.index(expected[5]) + 1])
        self.assertEqual(report["stop_reason"], "end of text")


class Refused(FolderTest):
    """Each broken folder is an error that names the file and what is wrong; the process goes on."""

    def refused(self, folder, *words, code=None):
        answer = self.dump(folder)
        self.assertIn("error", answer)
        for word in words:
            self.assertIn(word, answer["error"])
        self.assertIn(answer["code"], (code,) if code else ("corrupt file", "unsupported", "not found"))

    def changed(self, name, change=None, **config):
        """A copy of the good folder, whose config has other values (None: none); `change` is called with it."""
        folder = self.root / name
        shutil.copytree(self.good, folder)
        if config:
            values = json.loads((folder / "config.json").read_text())
            for key, value in config.items():
                values.pop(key) if value is None else values.update({key: value})
            (folder / "config.json").write_text(json.dumps(values))
        if change:
            change(folder)
        return folder

    def with_index(self, name, weight_map, change=None):
        def shard(folder):
            os.rename(folder / "model.safetensors", folder / "a.safetensors")
            names = {key: "a.safetensors" for key in load_file(folder / "a.safetensors")}
            (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {**names, **weight_map}}))
            if change:
                change(folder)

        return self.changed(name, shard)

    def test_numbers_of_the_config(self):
        cases = {
            "layers": ({"num_hidden_layers": 0}, "num_hidden_layers"),
            "many_layers": ({"num_hidden_layers": 2**40}, "num_hidden_layers"),
            "negative": ({"hidden_size": -32}, "hidden_size"),
            "too_large": ({"intermediate_size": 2**63}, "intermediate_size"),
            "vocabulary": ({"vocab_size": 2**31}, "vocab_size"),
            "no_size": ({"hidden_size": None}, "hidden_size"),
            "text": ({"num_attention_heads": "4"}, "num_attention_heads"),
            "fraction": ({"num_attention_heads": 4.0}, "num_attention_heads"),
            "divide": ({"num_attention_heads": 5, "num_key_value_heads": 5}, "num_attention_heads: 5 heads"),
            "share": ({"num_key_value_heads": 3}, "4 heads cannot share 3"),
            "wide": ({"head_dim": 2**16}, "too wide"),
            "odd": ({"head_dim": 7}, "odd width 7"),
            "base": ({"rope_theta": "NaN"}, "base of rotary positions is nan"),
            "base_0": ({"rope_theta": 0}, "base of rotary positions is 0"),
            "infinite": ({"rope_theta": "Infinity"}, "base of rotary positions is inf"),
            "epsilon": ({"rms_norm_eps": -1}, "epsilon"),
            "scaling": ({"rope_scaling": {"rope_type": "linear", "factor": 0}}, "factor of rotary positions"),
            "scaling_text": ({"rope_scaling": "linear"}, "rope_scaling"),
            "llama3": ({"rope_scaling": {"rope_type": "llama3", "factor": 8}}, "low_freq_factor"),
            "llama3_order": ({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 1,
                                               "original_max_position_embeddings": 8}}, "high_freq_factor"),
            "part": ({"partial_rotary_factor": 2}, "partial_rotary_factor"),
            "types": ({"layer_types": ["full_attention"]}, "layer_types"),
            "window": ({"layer_types": ["sliding_attention"] * 3}, "sliding_window"),
            "no_window": ({"sliding_window": 0}, "sliding_window"),
            "model_type": ({"model_type": ["llama"]}, "model_type"),
            "tied": ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        }
        for name, (values, word) in cases.items():
            with self.subTest(name):
                self.refused(self.changed("config_" + name, **values), "config.json", word, code="corrupt file")

    def test_what_this_version_does_not_run(self):
        cases = {
            "architecture": ({"model_type": "mamba\x1b[31m"}, ["model_type", "mamba", "llama", "qwen3", "gemma3_text"]),
            "longrope": ({"rope_scaling": {"type": "longrope"}}, ["rope_scaling.type", "longrope"]),
            "su": ({"rope_scaling": {"type": "su"}}, ["rope_scaling.type", "su"]),
            "activation": ({"hidden_act": "relu2"}, ["hidden_act", "relu2"]),
            "experts": ({"num_local_experts": 8}, ["num_local_experts"]),
            "quantized": ({"quantization_config": {"quant_method": "gptq"}}, ["quantization_config"]),
            "chunks": ({"layer_types": ["chunked_attention"] * 3}, ["layer_types[0]", "chunked_attention"]),
        }
        for name, (values, words) in cases.items():
            with self.subTest(name):
                self.refused(self.changed("unknown_" + name, **values), "config.json", *words, code="unsupported")

    def test_text_of_the_files(self):
        def write(file, text):
            return lambda folder: (folder / file).write_text(text)

        deep = "[" * 100000 + "]" * 100000
        good = json.dumps(folders.tiny_config())
        cases = {
            "empty": ("config.json", ""),
            "deep": ("config.json", '{"model_type": "llama", "x": ' + deep + "}"),
            "list": ("config.json", "[]"),
            "twice": ("config.json", good[:-1] + ', "hidden_size": 64}'),
            "nan": ("config.json", good.replace("1000.0", "NaN")),
            "bytes": ("config.json", '{"model_type": "\x00"}'),
            "tokens_deep": ("tokenizer.json", deep),
            "tokens": ("tokenizer.json", "{}"),
            "ends": ("generation_config.json", '{"eos_token_id": "x"}'),
            "template": ("tokenizer_config.json", '{"chat_template": 3}'),
            "templates": ("tokenizer_config.json", '{"chat_template": [{"template": "x"}]}'),
        }
        for name, (file, text) in cases.items():
            with self.subTest(name):
                self.refused(self.changed("text_" + name, write(file, text)), file)

    def test_missing_files(self):
        for file, code in (("config.json", "not found"), ("tokenizer.json", "not found"), ("model.safetensors", "not found")):
            folder = self.changed("without_" + file, lambda folder, file=file: os.unlink(folder / file))
            self.refused(folder, folder.name, file, code=code)
        torn = self.changed("pickle", lambda folder: os.rename(folder / "model.safetensors", folder / "pytorch_model.bin"))
        self.refused(torn, "pytorch_model.bin is not read", code="not found")

        def pipe(folder):
            os.unlink(folder / "config.json")
            os.mkfifo(folder / "config.json")

        self.refused(self.changed("pipe", pipe), "config.json: is not a regular file", code="input/output error")

    def test_index(self):
        name = "model.norm.weight"
        for bad in ("../good/model.safetensors", "/etc/passwd", "..", "", ".", "x/../a.safetensors", "a\\b", "a\0b"):
            with self.subTest(bad):
                folder = self.with_index("index_" + str(abs(hash(bad))), {name: bad})
                self.refused(folder, "model.safetensors.index.json", name, code="corrupt file")
        self.refused(self.with_index("gone", {name: "gone.safetensors"}), "gone.safetensors", code="not found")
        self.refused(self.with_index("extra", {"x": "a.safetensors"}), 'shard "a.safetensors" has no such tensor', code="corrupt file")
        self.refused(self.with_index("number", {name: 3}), name, code="corrupt file")
        self.refused(self.changed("no_map", lambda folder: (os.unlink(folder / "model.safetensors"),
                                                            (folder / "model.safetensors.index.json").write_text("{}"))), "weight_map")

    def test_the_same_tensor_in_two_shards(self):
        def twice(folder):
            save_file({"model.norm.weight": torch.zeros(tiny_llama.WIDTH), "x": torch.zeros(1)}, folder / "b.safetensors")

        self.refused(self.with_index("twice", {"x": "b.safetensors"}, twice), "index.json", "model.norm.weight", "b.safetensors",
                     "a.safetensors", code="corrupt file")

    def test_links_that_lead_out(self):
        for file in ("config.json", "tokenizer.json", "generation_config.json", "model.safetensors"):
            def link(folder, file=file):
                os.unlink(folder / file)
                os.symlink(self.good / file, folder / file)

            self.refused(self.changed("link_" + file, link), file, "leads out", code="unsupported")

        def link_shard(folder):
            os.unlink(folder / "a.safetensors")
            os.symlink(self.good / "model.safetensors", folder / "a.safetensors")

        self.refused(self.with_index("link_shard", {}, link_shard), "a.safetensors", "leads out", code="unsupported")

        def nowhere(folder):
            os.unlink(folder / "config.json")
            os.symlink("config.json", folder / "config.json")

        self.refused(self.changed("link_to_itself", nowhere), "config.json")

    def test_tensors(self):
        def tensors(change):
            def write(folder):
                values = load_file(folder / "model.safetensors")
                change(values)
                save_file(values, folder / "model.safetensors")

            return write

        up = "model.layers.1.mlp.up_proj.weight"
        norm = "model.norm.weight"
        cases = {
            "missing": (lambda values: values.pop(up), [up + " is missing"]),
            "extra": (lambda values: values.update({"model.layers.0.x": torch.zeros(1)}), ["model.layers.0.x is not known"]),
            "bias": (lambda values: values.update({"model.layers.0.self_attn.q_proj.bias": torch.zeros(32)}), ["q_proj.bias is not known"]),
            "shape": (lambda values: values.update({up: torch.zeros(8, 8)}), [up + " is [8, 8], not [72, 32]"]),
            "rank": (lambda values: values.update({norm: torch.zeros(1, 32)}), [norm + " is [1, 32], not [32]"]),
            "integers": (lambda values: values.update({norm: torch.zeros(32, dtype=torch.int32)}), [norm, "I32"]),
            "eight_bits": (lambda values: values.update({norm: torch.zeros(32).to(torch.float8_e4m3fn)}), [norm, "F8_E4M3"]),
            "head": (lambda values: values.pop("lm_head.weight"), ["lm_head.weight is missing"]),
        }
        for name, (change, words) in cases.items():
            with self.subTest(name):
                self.refused(self.changed("tensors_" + name, tensors(change)), *words)
        all_missing = self.changed("all", tensors(lambda values: [values.pop(key) for key in list(values) if "layers" in key]))
        self.refused(all_missing, "q_proj.weight is missing", "more")

    def test_safetensors_that_are_damaged(self):
        def cut(size):
            def write(folder):
                data = (folder / "model.safetensors").read_bytes()
                (folder / "model.safetensors").write_bytes(data[:size])

            return write

        def header(change):
            def write(folder):
                data = (folder / "model.safetensors").read_bytes()
                length = struct.unpack("<Q", data[:8])[0]
                values = json.loads(data[8 : 8 + length])
                change(values["model.norm.weight"])
                text = json.dumps(values).encode()
                (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])

            return write

        changes = {"cut_data": cut(-4), "cut_header": cut(100), "empty": cut(0),
                   "long": lambda folder: (folder / "model.safetensors").write_bytes(struct.pack("<Q", 2**60) + b"{}"),
                   "dtype": header(lambda entry: entry.update(dtype="F31")), "huge": header(lambda entry: entry.update(shape=[2**62, 2**62])),
                   "negative": header(lambda entry: entry.update(shape=[-32])),
                   "offsets": header(lambda entry: entry.update(data_offsets=[0, 2**62]))}
        for name, change in changes.items():
            with self.subTest(name):
                self.refused(self.changed("damaged_" + name, change), "model.safetensors", code="corrupt file")

    def test_on_the_command_line(self):
        done = generate(self.changed("cli", hidden_size=33), "-p", "x")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("halftone: error: ", done.stderr)
        self.assertIn("cli/config.json", done.stderr)
        for command in ("inspect", "verify", "run"):
            done = subprocess.run([HALFTONE, command, self.good], capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""), command)
            self.assertIn("is a directory", done.stderr)


if __name__ == "__main__":
    unittest.main()
