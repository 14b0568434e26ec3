"""Writes the seed corpus into tests/fuzz/seeds: small real files, so that the fuzzer starts behind the magic numbers.

Run it by hand when the set should change; the seeds are kept in the repository.
"""

import collections
import hashlib
import io
import json
import pathlib
import struct
import sys
import zipfile

import numpy
import safetensors.torch
import torch

HERE = pathlib.Path(__file__).resolve().parent / "seeds"
LLAMA3_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
                  r"|\s+(?!\S)|\s+")


def saved(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def pickle_of(container):
    with zipfile.ZipFile(io.BytesIO(container)) as opened:
        return opened.read("archive/data.pkl")


def write(target, name, data):
    assert len(data) <= 8192, (name, len(data))
    (HERE / target / name).write_bytes(data)


def checkpoint(records):
    """A .ht file with a tensor of 12 floats, written after docs/format.md."""
    metadata = {"halftone.format": "1", "halftone.kind": "graph", "halftone.tensors": json.dumps(records)}
    header = {
        "__metadata__": metadata,
        "w": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]},
        "__halftone__.pad.1": {"dtype": "U8", "shape": [16], "data_offsets": [48, 64]},
        "e": {"dtype": "U8", "shape": [2], "data_offsets": [64, 66]},
        "__halftone__.sha256": {"dtype": "U8", "shape": [32], "data_offsets": [66, 98]},
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    data = len(text).to_bytes(8, "little") + text + bytes(66)
    return data + hashlib.sha256(data).digest()


def checkpoint2(**more):
    """The same in version 2: a table of digests, and keys of a lifecycle backend."""
    metadata = {"halftone.format": "2", "halftone.needs": "0.2.0", "halftone.kind": "graph"}
    metadata["halftone.tensors"] = json.dumps([{"name": "w"}])
    metadata.update({"halftone." + key: json.dumps(value) for key, value in more.items()})
    header = {
        "__metadata__": metadata,
        "w": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]},
        "__halftone__.digests": {"dtype": "U8", "shape": [2, 32], "data_offsets": [48, 112]},
        "__halftone__.sha256": {"dtype": "U8", "shape": [32], "data_offsets": [112, 144]},
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    data = len(text).to_bytes(8, "little") + text + bytes(48)
    row = hashlib.sha256(data).digest()
    data += row + hashlib.sha256(row).digest()
    return data + hashlib.sha256(data).digest()


def gguf_text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_file(entries, tensors, version=3):
    """entries: key, number of the type, bytes. tensors: name, sizes, number of the type, number of bytes."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(entries))
    for key, kind, value in entries:
        head += gguf_text(key) + struct.pack("<I", kind) + value
    data = b""
    for name, sizes, kind, size in tensors:
        head += gguf_text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, len(data))
        data += bytes((7 * i + size) % 256 for i in range(size))
        data += bytes(-len(data) % 32)
    return head + bytes(-len(head) % 32) + data


def write_gguf():
    words = struct.pack("<IQ", 8, 3) + gguf_text("a") + gguf_text("") + gguf_text("token")
    nested = struct.pack("<IQ", 9, 2) + struct.pack("<IQ2B", 7, 2, 0, 1) + struct.pack("<IQ", 9, 0)
    plain = [("u8", 0, b"\1"), ("i8", 1, b"\xff"), ("u16", 2, b"\1\2"), ("i16", 3, b"\1\2"), ("u32", 4, b"\1\0\0\0"), ("i32", 5, b"\xff" * 4),
             ("f32", 6, struct.pack("<f", 1.5)), ("bool", 7, b"\1"), ("text", 8, gguf_text("llama")), ("words", 9, words),
             ("nested", 9, nested), ("u64", 10, bytes(8)), ("i64", 11, b"\xff" * 8), ("f64", 12, struct.pack("<d", 0.5))]
    write("gguf", "metadata.gguf", gguf_file([("general.architecture", 8, gguf_text("llama")), *plain], []))
    blocks = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84), 11: (256, 110),
              12: (256, 144), 13: (256, 176), 14: (256, 210), 30: (1, 2), 24: (1, 1), 16: (256, 66)}
    tensors = [(f"t{kind}", (values,), kind, size) for kind, (values, size) in blocks.items()]
    tensors += [("matrix", (3, 2), 0, 24), ("four", (2, 1, 3, 1), 1, 12), ("empty", (0, 5), 0, 0), ("scalar", (), 0, 4)]
    write("gguf", "blocks.gguf", gguf_file([("general.alignment", 4, struct.pack("<I", 32))], tensors))
    write("gguf", "version2.gguf", gguf_file(plain[-1:], [("w", (32, 4), 3, 80), ("unknown", (5,), 99, 0)], version=2))


def write_backends():
    backend = {"type": "QuantBackend", "config": {"quantization": "int8wo"}, "device": "cpu", "state": "ACTIVE"}
    backend["weights"] = "converted"
    nested = {"dict": [{"key": "a", "value": {"list": [1, True, None]}}, {"key": {"hex": "ff"}, "value": {"tuple": []}}]}
    values = [{"shape": [2, 3], "dtype": "F32"}, {"tensor": {"name": "w"}}, nested, {"float": 0.5}, {"text": "t"}]
    samples = [{"args": values, "kwargs": [{"key": "k", "value": {"complex": [1.0, "NaN"]}}]}]
    write("ht", "version2.ht", checkpoint2())
    write("ht", "backend.ht", checkpoint2(backend=backend, samples=samples, tuning={"cpu": "a CPU", "candidates": [{}]}))


def tokenizer(model, text, added=(), **steps):
    """The first line of a seed is a tokenizer.json, the rest a text."""
    flags = {"single_word": False, "lstrip": True, "rstrip": False, "normalized": False, "special": True}
    tokens = [{"id": i, "content": content, **flags} for content, i in added]
    document = {"version": "1.0", "added_tokens": tokens, "model": model, **steps}
    return json.dumps(document).encode() + b"\n" + text.encode()


def write_tokenizers():
    level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [5], "tokens": ["<s>"]}}}
    bpe = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3, "\u0120ab": 4}, "merges": ["a b", "\u0120 ab"]}
    write("tokenizer", "byte_level", tokenizer(bpe, "ab it's 12 <s> x", [("<s>", 5)], pre_tokenizer=level, decoder=level, post_processor=template,
                                               normalizer={"type": "NFC"}))
    pieces = ["<unk>", "a", "b", "\u2581", "\u2581a", "<0x0A>", "ab"]
    spm = {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "vocab": {t: i for i, t in enumerate(pieces)},
           "merges": [["\u2581", "a"], ["a", "b"]]}
    steps = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
                                                 {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}
    back = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
                                             {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    write("tokenizer", "sentence_piece", tokenizer(spm, "a ab\n\u00e9 zz<x>", [("<x>", 9)], normalizer=steps, decoder=back))
    unigram = {"type": "Unigram", "unk_id": 0, "vocab": [[t, -1.5 * i] for i, t in enumerate(pieces)], "byte_fallback": True}
    space = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True}
    write("tokenizer", "unigram", tokenizer(unigram, "a ab zz\n", normalizer={"type": "NFKD"}, pre_tokenizer=space, decoder=space))
    words = {"[UNK]": 0, "a": 1, "##b": 2, "!": 3}
    piece = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": words}
    bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    write("tokenizer", "bert", tokenizer(piece, "AB! \u4e2d c", normalizer=bert, pre_tokenizer={"type": "BertPreTokenizer"},
                                         decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
                                         post_processor={"type": "BertProcessing", "sep": ["a", 1], "cls": ["!", 3]}))
    split = {"type": "Split", "pattern": {"Regex": LLAMA3_PATTERN}, "behavior": "MergedWithNext", "invert": False}
    both = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, split, {**level, "use_regex": False}]}
    write("tokenizer", "llama3", tokenizer({**bpe, "ignore_merges": True}, "ab'S 1234\r\n x", pre_tokenizer=both, decoder=level))


def write_chat_templates():
    sys.path.insert(0, str(HERE.parents[2] / "src/text/template"))
    from template_texts import CHATS, STATEMENTS

    for name in ("counted", "thoughts", "macros"):
        write("chat_template", name, CHATS[name].encode() + b"\0<think>a</think>b")
    write("chat_template", "statements", "\n".join(STATEMENTS)[:8000].encode())


def main():
    torch.manual_seed(0)
    write_tokenizers()
    write_chat_templates()
    view = {"dtype": "F32", "offset": 16, "sizes": [2, 4], "strides": [1, 2]}
    write("ht", "plain.ht", checkpoint([{"name": "w", "grad": True}, {"name": {"hex": "ff"}, "stored": "e"}]))
    write("ht", "views.ht", checkpoint([{"name": "w", "strides": [1, 3]}, {"name": "v", "stored": "w", "view": view}]))
    write_backends()
    write_gguf()
    floats, bytes_ = torch.zeros(12), torch.zeros(16, dtype=torch.uint8)  # fit the storages of fuzz_pickle.cpp
    values = {
        "inputs": ((floats.reshape(3, 4),), {"k": {"z": bytes_}}),
        "views": [floats[2:6], floats.reshape(3, 4).t(), torch.empty(0, 3)],
        "plain": {"a": (1, -5, 2**40, 1.5, None, True), "b": ["text", []], 3: collections.OrderedDict(x=1)},
        "objects": [torch.nn.Parameter(floats), floats.size(), torch.device("cuda", 1), torch.float16],
        "untyped": [torch.zeros(24, dtype=torch.uint16)],
        "memo": [[1, 2]] * 3,
    }
    for name, value in values.items():
        write("pickle", name + ".pkl", pickle_of(saved(value)))
    write("zip", "torch.pt", saved(values["inputs"]))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        opened.writestr("a/data.pkl", pickle_of(saved(values["plain"])))
        with opened.open("a/zip64", "w", force_zip64=True) as member:
            member.write(b"abc")
        opened.comment = b"comment"
    write("zip", "python.zip", buffer.getvalue())
    tensors = {"w": torch.zeros(2, 3), "h": torch.zeros(2).half(), "e": torch.empty(0, 4), "s": torch.tensor(True)}
    write("safetensors", "four.safetensors", safetensors.torch.save(tensors, {"format": "pt"}))
    write("safetensors", "none.safetensors", safetensors.torch.save({}))
    buffer = io.BytesIO()
    numpy.save(buffer, numpy.asfortranarray(numpy.arange(6, dtype=numpy.float32).reshape(2, 3)))
    write("numpy", "columns.npy", buffer.getvalue())
    buffer = io.BytesIO()
    numpy.savez(buffer, ids=numpy.arange(3), flag=numpy.array(True))
    write("numpy", "two.npz", buffer.getvalue())
    buffer = io.BytesIO()
    numpy.savez_compressed(buffer, ids=numpy.arange(300), flag=numpy.array(True))
    write("numpy", "deflated.npz", buffer.getvalue())
    write("json", "values.json", b'{"a": [1, -2, 3.5e-3, true, null], "b": {"c": "\\u00e9 \\ud83d\\ude00 \\n"}, "d": []}')
    write("json", "node.json", b'{"target": "torch.ops.aten.add.Tensor", "inputs": [{"name": "self", "arg": '
                               b'{"as_tensor": {"name": "x"}}, "kind": 1}], "outputs": [], "is_hop": "NaN"}')  # fmt: skip


if __name__ == "__main__":
    main()
