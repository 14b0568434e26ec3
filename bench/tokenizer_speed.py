"""MB/s of our tokenizers beside the `tokenizers` package: one thread each, in turns.

    tokenizer_speed.py TOKENIZER_DUMP VOCABULARY.gguf…

Processor time of the fastest of five rounds. `lines`: 20,000 real lines, each a call; `text`: the same as one text.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "src/text"))
from gguf_metadata import read_metadata, vocabulary  # noqa: E402
from oracle_support import real_lines, write_texts  # noqa: E402

ROUNDS = 5


def hugging_face(values):
    sys.argv[1:] = sys.argv[1:3]
    from published_test import hugging_face as build

    return build(values)


def seconds(work):
    begin = time.process_time()
    work()
    return time.process_time() - begin


def main():
    program, *paths = sys.argv[1:]
    lines = [line for line, _ in zip(real_lines(), range(20000))]
    for path in map(pathlib.Path, paths):
        values = vocabulary(read_metadata(path))
        tokenizer = hugging_face(values)
        with tempfile.TemporaryDirectory() as folder:
            ours = pathlib.Path(folder) / "x.gguf.json"
            ours.write_text(json.dumps(values))
            for name, items in (("lines", lines), ("text", ["".join(lines)])):
                size = sum(len(item.encode()) for item in items) / 1e6
                write_texts(pathlib.Path(folder) / "texts", [item.encode() for item in items])
                best = {"encode": [], "decode": []}
                theirs = {"encode": [], "decode": []}
                for _ in range(ROUNDS):
                    done = subprocess.run([program, ours, f"{folder}/texts", "--speed", "1"], capture_output=True, check=True)
                    for key, value in json.loads(done.stdout).items():
                        best.get(key, []).append(value)
                    ids = []
                    theirs["encode"].append(seconds(lambda: ids.extend(tokenizer.encode(item).ids for item in items)))
                    theirs["decode"].append(seconds(lambda: [tokenizer.decode(row) for row in ids]))
                print(f"{path.stem:24} {name:6} {size:.1f} MB  " + "  ".join(
                    f"{key} {size / min(best[key]):6.1f} MB/s, tokenizers {size / min(theirs[key]):5.1f}" for key in best), flush=True)


if __name__ == "__main__":
    main()
