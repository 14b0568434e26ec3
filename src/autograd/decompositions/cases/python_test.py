#!/usr/bin/env python3
"""Compares the operators that our decompositions call with those of torch's own, call by call.

Takes the program that prints our expansions. Views and the overload of an operator (a number may be an operand of mul.Tensor
in Python, and is one of mul.Scalar in C++) are left out of the comparison. Differences must be in the list below.
"""
import collections
import json
import subprocess
import sys
import warnings

import torch
from torch._decomp import get_decompositions
from torch._functorch.compile_utils import fx_graph_cse
from torch.fx.experimental.proxy_tensor import make_fx

# Operator -> why its expansion is not Python's.
DIFFERENT = {}

TYPES = {
    "Double": torch.float64, "Float": torch.float32, "BFloat16": torch.bfloat16, "Long": torch.int64, "Bool": torch.bool,
    "ComplexDouble": torch.complex128, "ComplexFloat": torch.complex64, "Int": torch.int32,
}
# c10::ScalarType as a number.
NUMBERED_TYPES = {6: torch.float32, 7: torch.float64, 15: torch.bfloat16}
# The same operator under another name.
SAME = {"prims::convert_element_type": "aten::_to_copy"}


def find(name):
    packet, _, overload = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def tensor_of(described):
    sizes, strides, dtype = described["sizes"], described["strides"], TYPES[described["type"]]
    if "values" in described:
        return torch.tensor(described["values"], dtype=dtype).view(sizes)
    tensor = torch.empty_strided(sizes, strides, dtype=dtype)
    return tensor.copy_(torch.rand(sizes) > 0.5 if dtype == torch.bool else torch.rand(sizes))


def value_of(described, argument):
    if isinstance(described, dict):
        return float(described["number"]) if "number" in described else tensor_of(described)
    if described is not None and "ScalarType" in str(argument.type):
        return NUMBERED_TYPES[described]
    return described


def is_view(target):
    aliases = [a.alias_info for a in target._schema.arguments if a.alias_info is not None]
    return bool(aliases) and not any(info.is_write for info in aliases)


def count(names_and_views):
    counts = collections.Counter()
    for name, view in names_and_views:
        name = name.partition(".")[0]
        if not view and name != "aten::_unsafe_view":
            counts[SAME.get(name, name)] += 1
    return counts


def count_python(op, values, simplify):
    """What make_fx sees where `op` is the one operator with a decomposition.

    simplify: without what is not used or computed twice, as AotAutograd would leave it."""
    arguments = op._schema.arguments
    tensors = [v for v in values if isinstance(v, torch.Tensor)]

    def call(*given):
        given = iter(given)
        filled = [next(given) if isinstance(v, torch.Tensor) else v for v in values]
        positional = [v for v, a in zip(filled, arguments) if not a.kwarg_only]
        named = {a.name: v for v, a in zip(filled, arguments) if a.kwarg_only}
        return op(*positional, **named)

    graph = make_fx(call, decomposition_table=get_decompositions([op]))(*tensors).graph
    if simplify:
        graph.eliminate_dead_code()
        graph = fx_graph_cse(graph)
    targets = [n.target for n in graph.nodes if n.op == "call_function" and isinstance(n.target, torch._ops.OpOverload)]
    return count((t.name(), is_view(t)) for t in targets)


def compare(line):
    """None, or what is different."""
    op = find(line["op"])
    values = [value_of(o, a) for o, a in zip(line["operands"], op._schema.arguments)]
    expected = count_python(op, values, simplify=not line["default"])
    actual = count((name, is_view(find(name))) for name in line["operators"])
    if actual == expected:
        return None
    return f"ours {dict(actual - expected)}, Python's {dict(expected - actual)}"


def main():
    warnings.filterwarnings("ignore")
    output = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout
    lines = [json.loads(text) for text in output.splitlines()]
    assert len(lines) > 300, f"only {len(lines)} cases"
    different = collections.defaultdict(set)
    for line in lines:
        difference = compare(line)
        if difference:
            different[line["op"]].add(difference)
    failed = False
    for op, differences in different.items():
        if op not in DIFFERENT:
            failed = True
            print(f"{op}: " + "; ".join(sorted(differences)), file=sys.stderr)
    for op in DIFFERENT.keys() - different.keys():
        failed = True
        print(f"{op}: is in the list of differences, and is not different", file=sys.stderr)
    default = {line["op"] for line in lines if line["default"]}
    assert not default & DIFFERENT.keys(), "the default table has Python's operators"
    print(f"{len(lines)} calls of {len({line['op'] for line in lines})} operators, {len(different)} known to differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
