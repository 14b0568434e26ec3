"""Files that attack: refused by every command, with the name of the node or record and without any effect.

FINDINGS × COMMANDS is the matrix. Files are sound containers with right checksums; only what they hold is wrong.
"""
import concurrent.futures
import copy
import hashlib
import io
import json
import os
import resource
import time
import zipfile

import torch
from torch import nn

from cli_support import FOLDER, GOLDEN, CliTest, export, main, read_ht, rewrite_ht, run

SECRET = FOLDER / "secret.bin"
NODE = "stranger"
SECONDS = 30  # for one command, on a busy machine; on a quiet one it is a fifth of a second
# Operator → operands. INPUT is a tensor of the model, a list of numbers is sizes or strides, a text is a text.
OPERATORS = {
    "aten::from_file": {"filename": str(SECRET), "shared": True, "size": 16},
    "inductor::_reinterpret_tensor": {"self": "INPUT", "size": [4096], "stride": [1], "offset_increment": 64},
    "inductor::_alloc_from_pool": {"self": "INPUT", "offset_bytes": 4096, "dtype": "f32", "size": [4], "stride": [1]},
    "aten::_reshape_alias": {"self": "INPUT", "size": [4096], "stride": [1]},
    "aten::set_.source_Tensor": {"self": "INPUT", "source": "INPUT"},
    "aten::resize_": {"self": "INPUT", "size": [4096]},
    "aten::_print": {"s": "owned"},
    "made_up::magic": {"self": "INPUT"},
}
REFUSED = list(OPERATORS)
# Allowed, but not with these operands, or not with the result that is declared: the sizes of INPUT.
OPERATORS |= {
    "aten::cat": {"tensors": ["INPUT", "INPUT"], "dim": 0},
    "aten::as_strided": {"self": "INPUT", "size": [4096, 4096], "stride": [4096, 1], "storage_offset": 64},
    "aten::expand": {"self": "INPUT", "size": [-5, 8]},
    "aten::slice.Tensor": {"self": "INPUT", "dim": 99, "start": 0, "end": 4, "step": 1},
}
DECLARED = {"aten::as_strided": [4096, 4096]}
EXPORTED_FLOAT = 7  # of the export schema


def graph_operand(name, value):
    if isinstance(value, list) and value[0] == "INPUT":
        return f"{name}=[{', '.join('%z' for _ in value)}]"
    if value == "INPUT":
        return f"{name}=%z"
    if name == "dtype":
        return f"{name}=dtype:{value}"
    return f"{name}={json.dumps(value)}"


def golden_graph():
    return read_ht(GOLDEN / "v2_graph_fp32.ht")[0]["__metadata__"]["halftone.graph"]


def write_ht_node(operator, path):
    """The golden model with one node more, whose result it returns."""
    operands = ", ".join(graph_operand(name, value) for name, value in OPERATORS[operator].items())
    type_ = f"f32{DECLARED[operator]}" if operator in DECLARED else "f32[s0, 8]"
    result = "" if operator == "aten::_print" else f"%{NODE}: {type_} = "
    returned = "%z" if operator == "aten::_print" else f"%{NODE}"
    text = golden_graph().replace("  return %z", f'  {result}{operator}({operands})  @ "layer.7"\n  return {returned}')
    rewrite_ht(GOLDEN / "v2_graph_fp32.ht", path, {"halftone.graph": text})


def exported_operand(value, source):
    if isinstance(value, list) and value[0] == "INPUT":
        return {"as_tensors": [{"name": source} for _ in value]}
    if value == "INPUT":
        return {"as_tensor": {"name": source}}
    if value == "f32":
        return {"as_scalar_type": EXPORTED_FLOAT}
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": value}
    return {"as_ints": value} if isinstance(value, list) else {"as_string": value}


def rewrite_pt2(source, target, change):
    """A copy of an exported model whose graph module `change` has changed. zipfile writes right checksums."""
    with zipfile.ZipFile(source) as old:
        members = {info.filename: old.read(info) for info in old.infolist()}
    model = next(name for name in members if name.endswith("models/model.json"))
    document = json.loads(members[model])
    change(document["graph_module"])
    members[model] = json.dumps(document).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as new:
        for member, data in members.items():
            new.writestr(member, data)
    target.write_bytes(buffer.getvalue())


def write_pt2_node(operator, path):
    """The same with an exported model."""

    def add_node(module):
        graph = module["graph"]
        name, _, overload = operator.replace("::", ".").partition(".")[2].partition(".")
        source = graph["outputs"][0]["as_tensor"]["name"]
        node = copy.deepcopy(graph["nodes"][-1])
        node.update(target=f"torch.ops.{operator.split('::')[0]}.{name}.{overload or 'default'}", name=NODE)
        node["inputs"] = [
            {"name": key, "arg": exported_operand(value, source), "kind": 1} for key, value in OPERATORS[operator].items()
        ]
        node["outputs"] = [] if operator == "aten::_print" else [{"as_tensor": {"name": NODE}}]
        graph["nodes"].append(node)
        if operator == "aten::_print":
            return
        graph["tensor_values"][NODE] = copy.deepcopy(graph["tensor_values"][source])
        if operator in DECLARED:
            graph["tensor_values"][NODE]["sizes"] = [{"as_int": size} for size in DECLARED[operator]]
            graph["tensor_values"][NODE]["strides"] = [{"as_int": DECLARED[operator][1]}, {"as_int": 1}]
        graph["outputs"][0]["as_tensor"]["name"] = NODE
        module["signature"]["output_specs"][0]["user_output"]["arg"]["as_tensor"]["name"] = NODE

    rewrite_pt2(FOLDER / "block.pt2", path, add_node)


class Choice(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda a: torch.cat([a, a]).relu()[:3], lambda a: a - 1.0, (x,))


def write_ht_branch(path):
    """A branch that declares half of what its cat gives."""
    branches = f"""  %p: bool[] = aten::any(%z)
  %{NODE}: f32[s0, 8] = builtin::cond(%p, graph(%a: user "a" f32[s0, 8]) {{
      %b: f32[s0, 8] = aten::cat([%a, %a], 0)
      %c: f32[s0, 8] = aten::relu(%b)
      return %c
    }}, graph(%a: user "a" f32[s0, 8]) {{
      return %a
    }}, [%z])
  return %{NODE}"""
    rewrite_ht(GOLDEN / "v2_graph_fp32.ht", path, {"halftone.graph": golden_graph().replace("  return %z", branches)})


def write_pt2_branch(path):
    def lie(module):
        branches = [argument["arg"]["as_graph"]["graph"] for node in module["graph"]["nodes"] for argument in node["inputs"]
                    if "as_graph" in argument["arg"]]
        name = branches[0]["nodes"][0]["outputs"][0]["as_tensor"]["name"]
        branches[0]["tensor_values"][name]["sizes"] = [{"as_int": 3}]

    rewrite_pt2(FOLDER / "choice.pt2", path, lie)


def write_code(path):
    """The file names a package of machine code and gives itself the permission to run it."""
    record = {"type": "AotInductorBackend", "config": {"allow_code": True, "package": str(FOLDER / "evil.so")},
              "device": "cpu", "state": "ACTIVE", "weights": "converted"}
    rewrite_ht(GOLDEN / "v2_backend_int8dq.ht", path, {"halftone.backend": json.dumps(record)})


def write_block(path, offset, number):
    """int4.ht with another number in the header of its first packed block."""
    rewrite_ht(FOLDER / "int4.ht", path, {}, [("__halftone__.packed.0", offset, number.to_bytes(4, "little"))])


def findings():
    """Name → (ending → function that writes the file, what the message names)."""
    found = {operator: ({".ht": lambda path, operator=operator: write_ht_node(operator, path),
                         ".pt2": lambda path, operator=operator: write_pt2_node(operator, path)},
                        [operator.split("::")[1].split(".")[0]]) for operator in OPERATORS}
    found["a lying branch"] = ({".ht": write_ht_branch, ".pt2": write_pt2_branch}, ["cond", "cat"])
    found["machine code"] = ({".ht": write_code}, ["may not come from a file"])
    found["zero points"] = ({".ht": lambda path: write_block(path, 20, 1)}, ["packed", "up", "has_zero_points"])
    found["group 0"] = ({".ht": lambda path: write_block(path, 16, 0)}, ["packed", "up", "group"])
    return found


def commands(finding, path, number):
    new = f"new{number}.ht"
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
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in FOLDER.iterdir() if path.is_file()}


def timed(arguments, **options):
    began = time.monotonic()
    return run(*arguments, **options), time.monotonic() - began


def run_all(calls, **options):
    """(result, seconds) of each call of the program, as many at a time as there are cores."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda call: timed(call, **options), calls))


class HostileFiles(CliTest):
    def setUp(self):
        SECRET.write_bytes(b"keep me " * 8)

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
        for number, (finding, (writers, words)) in enumerate(findings().items()):
            for ending, write in writers.items():
                path = FOLDER / f"evil{number}{ending}"
                write(path)
                for command, arguments in commands(finding, path, number).items():
                    cells.append((finding, command, [path.name, *words], arguments))
        before = contents()
        results = run_all([arguments for *_, arguments in cells])
        self.assertEqual(contents(), before)
        for (finding, command, words, arguments), result in zip(cells, results, strict=True):
            with self.subTest(finding=finding, file=words[0], command=command):
                self.check(command, words, *result)
        self.assertGreater(len(cells), 180)

    def test_inspect_describes_what_cannot_run(self):
        for operator in REFUSED:
            with self.subTest(operator=operator):
                path = FOLDER / "described.pt2"
                write_pt2_node(operator, path)
                report = json.loads(self.ok("inspect", path, "--json").stdout)
                self.assertIn(NODE, [node["name"] for node in report["refused"]])
                self.assertEqual(SECRET.read_bytes(), b"keep me " * 8)

    def test_the_node_and_its_layer_are_named(self):
        for operator, reason in {
            "aten::from_file": "aten::from_file reads and writes files: refused in files",
            "aten::resize_": "aten::resize_ changes or reinterprets the memory",
            "aten::_reshape_alias": "aten::_reshape_alias changes or reinterprets the memory",
        }.items():
            checkpoint, exported = FOLDER / "named.ht", FOLDER / "named.pt2"
            write_ht_node(operator, checkpoint)
            self.fails(1, "run", checkpoint, says=[NODE, "layer.7", reason])
            write_pt2_node(operator, exported)
            self.fails(1, "run", exported, says=[NODE, reason])


class LongNames(CliTest):
    """Names of 50 million bytes: a short message, in seconds and little memory."""

    NAME = "n" * 50_000_000

    def golden(self, file, old, new, **more):
        rewrite_ht(GOLDEN / "v2_graph_fp32.ht", FOLDER / file, {"halftone.graph": golden_graph().replace(old, new)}, **more)
        return file

    def exported(self, file, change):
        rewrite_pt2(FOLDER / "choice.pt2", FOLDER / file, lambda module: change(module["graph"]))
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
        self.check([
            (("run", "block.pt2", "--inputs", "long.safetensors"), ["long.safetensors", "nnn"]),
            (("ptq", "block.pt2", "--data", "block.pt2", "--qconfig", "long.json", "-o", "never.ht"), ["long.json"]),
        ])


if __name__ == "__main__":
    export("block")
    torch.export.save(torch.export.export(Choice(), (torch.ones(3),)), FOLDER / "choice.pt2")
    made = run("quantize", "block.pt2", "--scheme", "int4wo", "--packed", "-o", "int4.ht")
    assert made.returncode == 0, made.stderr
    main()
