"""Files that attack: refused by every command, with the name of the node or record and without any effect.

The findings of hostile_findings.py × commands is the matrix: hostile_test.py HALFTONE HALFTONE_MANY FINDINGS, the folder that it wrote.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

from cli_support import FOLDER, GOLDEN, MAX_COLUMNS, CliTest, main, rewrite_ht, run
from hostile_findings import NODE, REFUSED, SECRET, golden_graph, rewrite_pt2

MANY = pathlib.Path(sys.argv.pop(1)).resolve()  # many calls for the price of one start, see many_calls.cpp
FINDINGS = pathlib.Path(sys.argv.pop(1)).resolve()
SECONDS = 30  # for one command, on a busy machine; on a quiet one it is a fifth of a second


def listed():
    """What is wrong as it stands; those that name a backend are for programs, which take what the file names."""
    found = json.loads((FINDINGS / "findings.json").read_text())
    return [entry for entry in found if entry["finding"] not in ("", "an endless loop") and not entry["backend"]]


def path_of(finding, ending):
    return next(FINDINGS / entry["file"] for entry in listed() if entry["finding"] == finding and entry["file"].endswith(ending))


def commands(finding, path):
    new = FOLDER / f"new_{path.stem}.ht"
    found = {
        "run eager": ("run", path, "--backend", "eager"),
        "run halftone": ("run", path, "--backend", "halftone"),
        # A .pt2 is described without the operators (see below); --graph needs them.
        "inspect": ("inspect", path, *(["--graph"] if path.suffix == ".pt2" else [])),
        "quantize": ("quantize", path, "--scheme", "int8wo", "-o", new),
        "tune": ("tune", path, "--no-cache", "--time-limit", "5", "-o", new),
        "bench": ("bench", path, "--schemes", "noquant", "--seconds", "0.2"),
    }
    if path.suffix == ".ht":
        found["verify"] = ("verify", path)
    if finding == "machine code":
        found["run"] = ("run", path)  # by the backend that the file names
    return found


def contents():
    files = [path for folder in (FOLDER, FINDINGS) for path in folder.iterdir() if path.is_file()]
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def timed(arguments, **options):
    began = time.monotonic()
    return run(*arguments, **options), time.monotonic() - began


def run_all(calls, **options):
    """(result, seconds) of each call of the program, as many at a time as there are cores."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda call: timed(call, **options), calls))


def run_many(calls):
    """The same by one process that forks, which knows no options."""
    with tempfile.TemporaryDirectory(prefix="halftone_many_") as folder:
        lines = ["\x1f".join(map(str, [number, *call])) for number, call in enumerate(calls)]
        done = subprocess.run([MANY], input="\n".join(lines) + "\n", capture_output=True, text=True, cwd=folder, check=True,
                              env={**os.environ, "COLUMNS": str(MAX_COLUMNS)})
        ended = {int(number): (int(status), float(seconds)) for number, status, seconds in map(str.split, done.stdout.splitlines())}
        assert len(os.listdir(folder)) == 2 * len(calls), "a call has written a file"
        results = []
        for number, call in enumerate(calls):
            out, err = (pathlib.Path(folder, f"{number}.{ending}").read_text() for ending in ("out", "err"))
            status, seconds = ended[number]
            code = os.waitstatus_to_exitcode(status)
            results.append((subprocess.CompletedProcess(call, code, out, err), seconds))
        return results


class HostileFiles(CliTest):
    def check(self, command, words, done, seconds):
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertLess(seconds, SECONDS)
        said = done.stderr
        if command == "bench":  # its rows say what happened to a model
            said += done.stdout
        else:
            self.assertEqual(done.stdout, "")
            self.assertTrue(said.startswith("halftone: error: "), said)
        for word in words:
            self.assertIn(word, said)
        for never in ("frame #", "Exception raised from", "terminate called", "c10::"):
            self.assertNotIn(never, said)

    def test_every_finding_is_refused_by_every_command(self):
        cells = []
        for entry in listed():
            path = FINDINGS / entry["file"]
            for command, arguments in commands(entry["finding"], path).items():
                cells.append((entry["finding"], command, [path.name, *entry["words"]], arguments))
        before = contents()
        results = run_many([arguments for *_, arguments in cells])
        self.assertEqual(contents(), before)
        for (finding, command, words, arguments), result in zip(cells, results, strict=True):
            with self.subTest(finding=finding, file=words[0], command=command):
                self.check(command, words, *result)
        self.assertGreater(len(cells), 180)

    def test_inspect_describes_what_cannot_run(self):
        results = run_many([("inspect", path_of(operator, ".pt2"), "--json") for operator in REFUSED])
        for operator, (done, _) in zip(REFUSED, results, strict=True):
            with self.subTest(operator=operator):
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(NODE, [node["name"] for node in json.loads(done.stdout)["refused"]])
        self.assertEqual((FINDINGS / "secret.bin").read_bytes(), SECRET)

    def test_the_node_and_its_layer_are_named(self):
        for operator, reason in {
            "aten::from_file": "aten::from_file reads and writes files: refused in files",
            "aten::resize_": "aten::resize_ changes or reinterprets the memory",
            "aten::_reshape_alias": "aten::_reshape_alias changes or reinterprets the memory",
        }.items():
            self.fails(1, "run", path_of(operator, ".ht"), says=[NODE, "layer.7", reason])
            self.fails(1, "run", path_of(operator, ".pt2"), says=[NODE, reason])


class LongNames(CliTest):
    """Names of 50 million bytes: a short message, in seconds and little memory."""

    NAME = "n" * 50_000_000

    def golden(self, file, old, new, **more):
        rewrite_ht(GOLDEN / "v2_graph_fp32.ht", FOLDER / file, {"halftone.graph": golden_graph().replace(old, new)}, **more)
        return file

    def exported(self, file, change):
        rewrite_pt2(FINDINGS / "choice.pt2", FOLDER / file, lambda module: change(module["graph"]))
        return file

    def files(self):
        layer = {"nn_module_stack": f"L__self__,{self.NAME},torch.nn.modules.linear.Linear"}
        yield self.golden("value.ht", "%y", f"%{self.NAME[:45_000_000]}"), ["the name of a value has 45000000 bytes"]  # it is there twice
        yield self.golden("layer.ht", '@ "fc"', f'@ "{self.NAME}"'), ["the name of a layer has 50000000 bytes"]
        yield self.golden("input.ht", 'user "x"', f'user "{self.NAME}"'), ["the name of an input's target has 50000000 bytes"]
        yield self.golden("operator.ht", "aten::relu", f"aten::{self.NAME}"), ["unknown operators"]
        yield self.golden("tensor.ht", "none", "none", renamed=[("fc.bias", self.NAME)]), ["fc.bias"]
        yield self.exported("node.pt2", lambda graph: graph["nodes"][0].update(target=f"torch.ops.aten.{self.NAME}")), ["nnn"]
        yield self.exported("layer.pt2", lambda graph: graph["nodes"][0]["metadata"].update(layer)), ["the name of a layer"]
        yield self.exported("value.pt2", lambda graph: graph["nodes"][0]["outputs"][0]["as_tensor"].update(name=self.NAME)), ["nnn"]

    def check(self, calls):
        """(arguments, words of the message) of each call."""
        memory = 6 << 30  # of addresses: libtorch takes two
        results = run_all([arguments for arguments, _ in calls],
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)))
        for (arguments, words), (done, seconds) in zip(calls, results, strict=True):
            with self.subTest(command=arguments):
                self.assertEqual(done.returncode, 1, done.stdout[:4000] + done.stderr[:4000])
                self.assertEqual(done.stdout, "")
                self.assertLess(len(done.stderr), 5000)
                self.assertLess(seconds, SECONDS)
                for word in words:
                    self.assertIn(word, done.stderr)

    def test_models(self):
        calls = [(("inspect", file), [file, *words]) for file, words in self.files()]
        calls += [(("run", "layer.ht"), ["the name of a layer"]), (("verify", "layer.ht"), ["the name of a layer"])]
        self.check(calls)

    def test_inputs_and_configs(self):
        header = json.dumps({self.NAME: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
        (FOLDER / "long.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
        (FOLDER / "long.json").write_text(json.dumps({self.NAME: 1}))
        block = FINDINGS / "block.pt2"
        self.check([
            (("run", block, "--inputs", "long.safetensors"), ["long.safetensors", "nnn"]),
            (("ptq", block, "--data", block, "--qconfig", "long.json", "-o", "never.ht"), ["long.json"]),
        ])


if __name__ == "__main__":
    main()
