"""The findings of what was tried against 0.2.0, as files: hostile_findings.py HALFTONE FOLDER.

Sound containers with right checksums; only what they hold is wrong. FOLDER/findings.json lists them for the tests that walk through
them: hostile_test.py with every command, tests/hostile/findings_test.cpp with every function that loads.
"""
import copy
import io
import json
import pathlib
import sys
import zipfile

import torch
from torch import nn

from cli_support import EXPORTERS, GOLDEN, read_ht, rewrite_ht, run

NODE = "stranger"
SECRET = b"keep me " * 8  # of the file secret.bin, which one of them would read and write
# Operator → operands. INPUT is a tensor of the model, SECRET the file's path, a list of numbers is sizes or strides, a text is a text.
REFUSED = {
    "aten::from_file": {"filename": "SECRET", "shared": True, "size": 16},
    "inductor::_reinterpret_tensor": {"self": "INPUT", "size": [4096], "stride": [1], "offset_increment": 64},
    "inductor::_alloc_from_pool": {"self": "INPUT", "offset_bytes": 4096, "dtype": "f32", "size": [4], "stride": [1]},
    "aten::_reshape_alias": {"self": "INPUT", "size": [4096], "stride": [1]},
    "aten::set_.source_Tensor": {"self": "INPUT", "source": "INPUT"},
    "aten::resize_": {"self": "INPUT", "size": [4096]},
    "aten::_print": {"s": "owned"},
    "made_up::magic": {"self": "INPUT"},
}
# Allowed, but not with these operands, or not with the result that is declared: the sizes of INPUT.
OPERATORS = REFUSED | {
    "aten::cat": {"tensors": ["INPUT", "INPUT"], "dim": 0},
    "aten::as_strided": {"self": "INPUT", "size": [4096, 4096], "stride": [4096, 1], "storage_offset": 64},
    "aten::expand": {"self": "INPUT", "size": [-5, 8]},
    "aten::slice.Tensor": {"self": "INPUT", "dim": 99, "start": 0, "end": 4, "step": 1},
}
DECLARED = {"aten::as_strided": [4096, 4096]}
EXPORTED_FLOAT = 7  # of the export schema
BACKENDS = {"eager": "EagerBackend", "halftone": "HalftoneBackend"}


def operands(operator, folder):
    return {name: str(folder / "secret.bin") if value == "SECRET" else value for name, value in OPERATORS[operator].items()}


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


def write_golden(path, end):
    """The golden model that ends in another way than by returning %z."""
    rewrite_ht(GOLDEN / "v2_graph_fp32.ht", path, {"halftone.graph": golden_graph().replace("  return %z", end)})


def write_ht_node(operator, path):
    """The golden model with one node more, whose result it returns."""
    given = ", ".join(graph_operand(name, value) for name, value in operands(operator, path.parent).items())
    type_ = f"f32{DECLARED[operator]}" if operator in DECLARED else "f32[s0, 8]"
    result = "" if operator == "aten::_print" else f"%{NODE}: {type_} = "
    returned = "%z" if operator == "aten::_print" else f"%{NODE}"
    write_golden(path, f'  {result}{operator}({given})  @ "layer.7"\n  return {returned}')


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
            {"name": key, "arg": exported_operand(value, source), "kind": 1} for key, value in operands(operator, path.parent).items()
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

    rewrite_pt2(path.parent / "block.pt2", path, add_node)


class Choice(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda a: torch.cat([a, a]).relu()[:3], lambda a: a - 1.0, (x,))


def write_ht_branch(path):
    """A branch that declares half of what its cat gives."""
    write_golden(path, f"""  %p: bool[] = aten::any(%z)
  %{NODE}: f32[s0, 8] = builtin::cond(%p, graph(%a: user "a" f32[s0, 8]) {{
      %b: f32[s0, 8] = aten::cat([%a, %a], 0)
      %c: f32[s0, 8] = aten::relu(%b)
      return %c
    }}, graph(%a: user "a" f32[s0, 8]) {{
      return %a
    }}, [%z])
  return %{NODE}""")


def write_pt2_branch(path):
    def lie(module):
        branches = [argument["arg"]["as_graph"]["graph"] for node in module["graph"]["nodes"] for argument in node["inputs"]
                    if "as_graph" in argument["arg"]]
        name = branches[0]["nodes"][0]["outputs"][0]["as_tensor"]["name"]
        branches[0]["tensor_values"][name]["sizes"] = [{"as_int": 3}]

    rewrite_pt2(path.parent / "choice.pt2", path, lie)


def write_loop(path):
    """A loop that never ends: sums of what relu gives are not negative."""
    write_golden(path, f"""  %n: f32[] = aten::sum(%z)
  %{NODE}: f32[] = builtin::while_loop(graph(%u: user "u" f32[], %s: user "s" f32[]) {{
      %c: bool[] = aten::ge.Scalar(%u, 0)
      return %c
    }}, graph(%u: user "u" f32[], %s: user "s" f32[]) {{
      %v: f32[] = aten::abs(%u)
      return %v
    }}, [%n], [%n])
  return %{NODE}""")


def write_code(path):
    """The file names a package of machine code and gives itself the permission to run it."""
    record = {"type": "AotInductorBackend", "config": {"allow_code": True, "package": str(path.parent / "evil.so")},
              "device": "cpu", "state": "ACTIVE", "weights": "converted"}
    rewrite_ht(GOLDEN / "v2_backend_int8dq.ht", path, {"halftone.backend": json.dumps(record)})


def write_block(path, offset, number):
    """int4.ht with another number in the header of its first packed block."""
    rewrite_ht(path.parent / "int4.ht", path, {}, [("__halftone__.packed.0", offset, number.to_bytes(4, "little"))])


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


def write_for_backend(source, backend):
    """The same file with a backend that is asked to run it: what `load` makes ready."""
    record = {"type": BACKENDS[backend], "config": {}, "device": "cpu", "state": "ACTIVE", "weights": "original"}
    path = source.with_name(f"{source.stem}.{backend}.ht")
    rewrite_ht(source, path, {"halftone.backend": json.dumps(record)})
    return path


def write_all(folder):
    """Every file; gives the list of them."""
    (folder / "secret.bin").write_bytes(SECRET)
    torch.export.save(EXPORTERS["block"](), folder / "block.pt2")
    torch.export.save(torch.export.export(Choice(), (torch.ones(3),)), folder / "choice.pt2")
    made = run("quantize", folder / "block.pt2", "--scheme", "int4wo", "--packed", "-o", folder / "int4.ht", "--force")
    assert made.returncode == 0, made.stderr
    listed = []

    def add(path, **entry):
        listed.append({"file": path.name, "backend": "", **entry})
        if path.suffix == ".ht" and entry["finding"] != "machine code":
            listed.extend({"file": write_for_backend(path, key).name, "backend": name, **entry} for key, name in BACKENDS.items())

    for number, (finding, (writers, words)) in enumerate(findings().items()):
        for ending, write in writers.items():
            path = folder / f"evil{number}{ending}"
            write(path)
            add(path, finding=finding, words=words)
    # Nothing is wrong with it until it runs.
    write_loop(folder / "endless.ht")
    add(folder / "endless.ht", finding="an endless loop", words=["while_loop", NODE])
    # And what nothing at all is wrong with, lest everything be refused.
    write_golden(folder / "sound.ht", "  return %z")
    for name in ("sound.ht", "int4.ht", "block.pt2", "choice.pt2"):
        add(folder / name, finding="", words=[])
    return listed


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1]).resolve()  # cli_support has taken the program's path
    target.mkdir(parents=True, exist_ok=True)
    (target / "findings.json").write_text(json.dumps(write_all(target), indent=1))
