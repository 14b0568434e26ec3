"""Tests of GGUF files on the command line: inspect describes them, verify checks them, every other command says so."""
import json
import struct

from cli_support import FOLDER, CliTest, main, run

U32, F32, STRING, ARRAY = 4, 6, 8, 9
TENSOR_F32, TENSOR_Q4_1, TENSOR_Q8_0, TENSOR_IQ1_S = 0, 3, 8, 19


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def u32(value):
    return struct.pack("<I", value)


def strings(words):
    return struct.pack("<IQ", STRING, len(words)) + b"".join(map(text, words))


ENTRIES = [
    entry("general.architecture", STRING, text("llama")),
    entry("general.name", STRING, text(b"Tiny \x1b[31m \xff")),
    entry("llama.context_length", U32, u32(8192)),
    entry("llama.block_count", U32, u32(30)),
    entry("llama.attention.head_count", U32, u32(9)),
    entry("llama.attention.head_count_kv", U32, u32(3)),
    entry("llama.embedding_length", U32, u32(576)),
    entry("llama.rope.freq_base", F32, struct.pack("<f", 100000)),
    entry("llama.attention.layer_norm_rms_epsilon", F32, struct.pack("<f", 1e-5)),
    entry("tokenizer.ggml.model", STRING, text("gpt2")),
    entry("tokenizer.ggml.tokens", ARRAY, strings([f"t{i}" for i in range(20)])),
    entry("tokenizer.chat_template", STRING, text("{% for message in messages %}\n" * 50)),
    entry("odd\x1b]0;key\u202e", STRING, text("value")),
]
TENSORS = [("token_embd.weight", (64, 20), TENSOR_Q8_0, 1360), ("blk.0.attn_q.weight", (32, 4), TENSOR_Q4_1, 80),
           ("blk.0.attn_norm.weight", (8,), TENSOR_F32, 32)]


def model(entries=ENTRIES, tensors=TENSORS, version=3, fill=b"\0"):
    described, data = b"", b""
    for name, sizes, kind, size in tensors:
        described += text(name) + u32(len(sizes)) + b"".join(struct.pack("<Q", n) for n in sizes) + struct.pack("<IQ", kind, len(data))
        data += fill * size
        data += bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(entries)) + b"".join(entries) + described
    return head + bytes(-len(head) % 32) + data


def write(name, data):
    (FOLDER / name).write_bytes(data)
    return name


class Inspect(CliTest):
    def test_a_model(self):
        done = self.ok("inspect", write("tiny.gguf", model()))
        self.assert_narrow(done.stdout)
        for words in ("tiny.gguf: GGUF version 3", "llama", "8,192", "9 (3 for keys and values)", "20 (tokenizer gpt2)", "1,416",
                      "Q8_0", "Q4_1", "array of 20 string", "100000"):  # fmt: skip
            self.assertIn(words, done.stdout)
        for never in ("\x1b", "\u202e", "blk.0.attn_q.weight"):
            self.assertNotIn(never, done.stdout)
        listed = self.ok("inspect", "tiny.gguf", "--tensors").stdout
        self.assertIn("blk.0.attn_q.weight", listed)
        self.assertIn("[4, 32]", listed)

    def test_as_json(self):
        report = json.loads(self.ok("inspect", write("tiny.gguf", model(version=2)), "--json").stdout)
        self.assertEqual((report["format"], report["version"]), ("gguf", 2))
        self.assertEqual((report["architecture"], report["context_length"], report["layers"]), ("llama", 8192, 30))
        self.assertEqual((report["heads"], report["kv_heads"], report["vocabulary"]), (9, 3, 20))
        self.assertIsNone(report["feed_forward_length"])
        self.assertEqual(report["totals"], {"tensors": 3, "parameters": 1280 + 128 + 8, "bytes": 1360 + 80 + 32})
        self.assertEqual([(t["name"], tuple(t["shape"]), t["bytes"]) for t in report["tensors"]],
                         [(name, sizes[::-1], size) for name, sizes, _, size in TENSORS])
        self.assertEqual(report["types"][0], {"type": "Q8_0", "tensors": 1, "parameters": 1280, "bytes": 1360, "readable": True})
        values = {each["key"]: each for each in report["metadata"]}
        self.assertEqual(values["llama.rope.freq_base"]["value"], 100000.0)
        self.assertEqual(values["llama.attention.layer_norm_rms_epsilon"]["value"], 1e-5)
        self.assertEqual(values["tokenizer.ggml.tokens"]["value"], [f"t{i}" for i in range(8)])
        self.assertFalse(values["tokenizer.ggml.tokens"]["whole"])
        self.assertEqual(values["odd\x1b]0;key\u202e"]["value"], "value")
        self.assertEqual(values["general.name"]["value"], "Tiny \x1b[31m \\xff")

    def test_a_model_that_says_nothing(self):
        done = self.ok("inspect", write("bare.gguf", model([], [])))
        self.assertIn("none", done.stdout)
        self.assertEqual(json.loads(self.ok("inspect", "bare.gguf", "--json").stdout)["architecture"], "")

    def test_what_does_not_go_with_it(self):
        write("tiny.gguf", model())
        for option in ("--graph", "--dot", "--time", "--submodules"):
            self.fails(2, "inspect", "tiny.gguf", option, says=["tiny.gguf: a GGUF file is described only"])
        write("notes.txt", b"words")
        self.fails(2, "inspect", "notes.txt", "--tensors", says=["--tensors goes with a .gguf file"])

    def test_what_is_broken(self):
        write("broken.gguf", model()[:300])
        for command in ("inspect", "verify"):
            self.fails(1, command, "broken.gguf", says=["broken.gguf: ", "byte ", " is cut off"])
            self.fails(1, command, write("old.gguf", model(version=1)), says=["GGUF version 1 is not read"])
            self.fails(1, command, write("big.gguf", b"FUGG" + model()[4:]), says=["big-endian", "gguf-convert-endian"])


class Verify(CliTest):
    def test_a_sound_file(self):
        unread = [*TENSORS, ("blk.0.ffn.weight", (256,), TENSOR_IQ1_S, 50)]
        done = self.ok("verify", write("tiny.gguf", model(tensors=unread)))
        for words in ("tiny.gguf is sound", "GGUF version 3, architecture llama", "4 tensors, 1,672 parameters",
                      "read      Q8_0, Q4_1, F32", "not read  IQ1_S", "GGUF has no checksum"):  # fmt: skip
            self.assertIn(words, done.stdout)
        report = json.loads(self.ok("verify", "tiny.gguf", "--json").stdout)
        self.assertTrue(report["sound"] and report["numbers_checked"])
        self.assertFalse(report["types"]["IQ1_S"]["readable"])
        self.assertEqual(len(report["sha256"]), 64)

    def test_findings(self):
        write("nan.gguf", model(fill=b"\xff"))
        self.fails(1, "verify", "nan.gguf", says=["3 findings", '"blk.0.attn_norm.weight": 8 of its 8 numbers are not finite'])
        done = run("verify", "nan.gguf", "--json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(json.loads(done.stdout)["findings"]), 3)
        self.assertIn("(--fast)", self.ok("verify", "nan.gguf", "--fast").stdout)


class OtherCommands(CliTest):
    def test_each_says_what_the_file_is(self):
        write("tiny.gguf", model())
        for command in (("run", "tiny.gguf"), ("tune", "tiny.gguf", "--no-cache", "-o", "never.ht"),
                        ("quantize", "tiny.gguf", "--scheme", "int8wo", "-o", "never.ht"), ("diagnose", "tiny.gguf", "--scheme", "int8wo"),
                        ("autoquant", "tiny.gguf", "-o", "never.ht"), ("ptq", "tiny.gguf", "--data", "in.safetensors", "-o", "never.ht"),
                        ("compare", "tiny.gguf", "tiny.gguf"), ("minify", "tiny.gguf", "--backend", "halftone"), ("bench", "tiny.gguf")):  # fmt: skip
            done = self.fails(1, *command, says=["tiny.gguf: a GGUF file. `halftone inspect` describes it and `halftone verify` checks it"])
            self.assertEqual(len(done.stderr.splitlines()), 1, command)
        self.assertFalse((FOLDER / "never.ht").exists())


if __name__ == "__main__":
    main()
