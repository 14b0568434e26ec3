"""Graphs that call what no file may call: refused by every command, with the node's name and without any effect."""
import copy
import io
import json
import zipfile

from cli_support import FOLDER, GOLDEN, CliTest, export, main, rewrite_ht, run

SECRET = FOLDER / "secret.bin"
NODE = "stranger"
# Operator → operands. A name is the model's first input, a list of numbers is sizes or strides, a text is a text.
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
EXPORTED_FLOAT = 7  # of the export schema


def graph_operand(name, value):
    if value == "INPUT":
        return f"{name}=%x"
    if name == "dtype":
        return f"{name}=dtype:{value}"
    return f"{name}={json.dumps(value)}"


def write_ht(operator, path):
    """The golden model with one node more, whose result it returns."""
    operands = ", ".join(graph_operand(name, value) for name, value in OPERATORS[operator].items())
    result = "" if operator == "aten::_print" else f"%{NODE}: tensor = "
    text = golden_graph().replace("  return %z", f'  {result}{operator}({operands})  @ "layer.7"\n  return %z')
    rewrite_ht(GOLDEN / "v2_graph_fp32.ht", path, {"halftone.graph": text})


def golden_graph():
    data = (GOLDEN / "v2_graph_fp32.ht").read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length])["__metadata__"]["halftone.graph"]


def exported_operand(value, source):
    if value == "INPUT":
        return {"as_tensor": {"name": source}}
    if value == "f32":
        return {"as_scalar_type": EXPORTED_FLOAT}
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": value}
    return {"as_ints": value} if isinstance(value, list) else {"as_string": value}


def write_pt2(operator, path):
    """The same with an exported model. zipfile writes right checksums."""
    with zipfile.ZipFile(FOLDER / "block.pt2") as old:
        members = {info.filename: old.read(info) for info in old.infolist()}
    model = next(name for name in members if name.endswith("models/model.json"))
    document = json.loads(members[model])
    graph = document["graph_module"]["graph"]
    name, _, overload = operator.replace("::", ".").partition(".")[2].partition(".")
    source = graph["inputs"][-1]["as_tensor"]["name"]
    node = copy.deepcopy(graph["nodes"][-1])
    node.update(target=f"torch.ops.{operator.split('::')[0]}.{name}.{overload or 'default'}", name=NODE)
    node["inputs"] = [
        {"name": key, "arg": exported_operand(value, source), "kind": 1} for key, value in OPERATORS[operator].items()
    ]
    node["outputs"] = [] if operator == "aten::_print" else [{"as_tensor": {"name": NODE}}]
    graph["nodes"].append(node)
    graph["tensor_values"][NODE] = copy.deepcopy(graph["tensor_values"][source])
    members[model] = json.dumps(document).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as new:
        for member, data in members.items():
            new.writestr(member, data)
    path.write_bytes(buffer.getvalue())


class HostileOperators(CliTest):
    def setUp(self):
        SECRET.write_bytes(b"keep me " * 8)

    def refused(self, path, *commands):
        before = sorted(FOLDER.iterdir())
        operator = path.stem.split("-", 1)[1].replace("--", "::")
        name = operator.split("::")[1].split(".")[0]
        for command in commands:
            with self.subTest(operator=operator, command=command):
                self.fails(1, *command, says=[path.name, name])
                self.assertEqual(SECRET.read_bytes(), b"keep me " * 8)
                self.assertEqual(sorted(FOLDER.iterdir()), before)

    def commands(self, path):
        return [
            ("run", path, "--backend", "eager"),
            ("run", path, "--backend", "halftone"),
            ("inspect", path),
            ("quantize", path, "--scheme", "int8wo", "-o", "new.ht"),
            ("tune", path, "-o", "new.ht"),
        ]

    def file(self, operator, extension):
        return FOLDER / f"evil-{operator.replace('::', '--')}{extension}"

    def test_exported_models_are_refused(self):
        for operator in OPERATORS:
            path = self.file(operator, ".pt2")
            write_pt2(operator, path)
            self.refused(path, *(command for command in self.commands(path) if command[0] != "inspect"))
            self.refused(path, ("inspect", path, "--graph"))
            # Described, not loaded: what the file says, with the reason why it cannot be run.
            report = json.loads(self.ok("inspect", path, "--json").stdout)
            self.assertIn(NODE, [node["name"] for node in report["refused"]])
            self.assertEqual(SECRET.read_bytes(), b"keep me " * 8)

    def test_checkpoints_are_refused(self):
        for operator in OPERATORS:
            path = self.file(operator, ".ht")
            write_ht(operator, path)
            self.refused(path, *self.commands(path), ("run", path), ("verify", path))

    def test_the_node_and_its_layer_are_named(self):
        for operator, reason in {
            "aten::from_file": "aten::from_file reads and writes files: refused in files",
            "aten::resize_": "aten::resize_ changes or reinterprets the memory",
            "aten::_reshape_alias": "aten::_reshape_alias changes or reinterprets the memory",
        }.items():
            checkpoint = self.file(operator, ".ht")
            write_ht(operator, checkpoint)
            self.fails(1, "run", checkpoint, says=[NODE, "layer.7", reason])
            exported = self.file(operator, ".pt2")
            write_pt2(operator, exported)
            self.fails(1, "run", exported, says=[NODE, reason])

    def test_bench_refuses_them(self):
        for extension, write in ((".pt2", write_pt2), (".ht", write_ht)):
            path = self.file("aten::from_file", extension)
            write("aten::from_file", path)
            done = run("bench", path, "--schemes", "noquant", "--seconds", "0.2")
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn("aten::from_file", done.stdout + done.stderr)
            self.assertEqual(SECRET.read_bytes(), b"keep me " * 8)


if __name__ == "__main__":
    export("block")
    main()
