"""The metadata of a GGUF file, in Python: enough to read vocabularies in tests."""
import struct

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def scalar(self, code):
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize(code)
        return value

    def text(self):
        length = self.scalar("Q")
        self.at += length
        return self.data[self.at - length: self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            return self.scalar(SCALARS[kind])
        kind, count = self.scalar("I"), self.scalar("Q")
        if kind in (STRING, ARRAY):
            return [self.value(kind) for _ in range(count)]
        values = struct.unpack_from(f"<{count}{SCALARS[kind]}", self.data, self.at)
        self.at += struct.calcsize(f"{count}{SCALARS[kind]}")
        return list(values)


def read_metadata(path):
    reader = Reader(path.read_bytes())
    assert reader.data[:4] == b"GGUF", path
    reader.at = 8
    reader.scalar("Q")
    return {reader.text(): reader.value(reader.scalar("I")) for _ in range(reader.scalar("Q"))}


def vocabulary(metadata):
    """The keys of tokenizer.ggml, as tokenizer_dump reads them."""
    return {key.removeprefix("tokenizer.ggml."): value for key, value in metadata.items() if key.startswith("tokenizer.ggml.")}
