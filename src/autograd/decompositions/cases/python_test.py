#!/usr/bin/env python3
"""Compares the operators that our decompositions call with those of torch's own, call by call.

Takes the program that prints our expansions. Views and the overload of an operator (a number may be an operand of mul.Tensor
in Python, and is one of mul.Scalar in C++) are left out of the comparison. Differences must be in the list below.
"""
import collections
import functools
import json
import subprocess
import sys
import warnings

import torch
from torch._decomp import get_decompositions
from torch._functorch.compile_utils import fx_graph_cse
from torch.fx.experimental.proxy_tensor import make_fx

ONE_FACTOR = "no product with the number 1"
NO_ENTRY = "Python has no decomposition of it"
PARTS = "Python stops at a variance (prims.var or aten.var), ours is taken apart"
CLAMP = "one clamp where Python compares with a tensor of one number"
RUNNING = "one rsqrt for Python's sqrt, reciprocal and product with 1; statistics are copied in half precision only"
NLL = "the weights of the targets are looked up, Python multiplies all of x with all weights; half precision is computed in float"
NLL_BACKWARD = "the gradient is scattered, Python multiplies it with a scattered -1; half precision is computed in float"

# Operator -> why its expansion is not Python's.
DIFFERENT = {
    "aten::_log_softmax": "nothing is looked for where there are no elements",
    "aten::_softmax": "nothing is looked for where there are no elements",
    "aten::_native_batch_norm_legit": RUNNING,
    "aten::_native_batch_norm_legit_functional": RUNNING + "; new statistics have the type of the old",
    "aten::_native_batch_norm_legit_no_training": "Python stops at _native_batch_norm_legit",
    "aten::addcdiv": ONE_FACTOR,
    "aten::addcmul": ONE_FACTOR,
    "aten::addmm": ONE_FACTOR,
    "aten::addmv": ONE_FACTOR,
    "aten::binary_cross_entropy": CLAMP,
    "aten::embedding_dense_backward": "indices are in range, as the operator wants them: Python masks what is not",
    "aten::hardshrink_backward": NO_ENTRY,
    "aten::huber_loss_backward": "a clamp for two comparisons and two choices",
    "aten::lerp.Scalar": "the number is looked at here, not in the graph",
    "aten::linalg_vector_norm": "x*x and sqrt for powers of 2 and 0.5; no powers of 1",
    "aten::log_sigmoid_backward": "one choice between two shares for Python's two choices between four numbers",
    "aten::log_sigmoid_forward": CLAMP,
    "aten::logit": CLAMP,
    "aten::logit_backward": "scalar_tensor for new_full",
    "aten::logsumexp": "where for masked_fill",
    "aten::native_batch_norm": RUNNING,
    "aten::native_batch_norm_backward": "nothing is computed for gradients that are not wanted; means are not cast",
    "aten::native_dropout_backward": "no copy of the result",
    "aten::native_group_norm": "bias - mean*factor in one; results have the operand's strides",
    "aten::native_group_norm_backward": "no weight of ones; results have the operand's strides",
    "aten::native_layer_norm": "statistics have the type of the weight, as the operator's",
    "aten::native_layer_norm_backward": "rstd is divided in float; sums of no rows instead of zeros; no result is an operand",
    "aten::nll_loss2d_backward": NLL_BACKWARD,
    "aten::nll_loss2d_forward": NLL,
    "aten::nll_loss_backward": NLL_BACKWARD,
    "aten::nll_loss_forward": NLL,
    "aten::rrelu_with_noise_backward": "Python stops at leaky_relu_backward",
    "aten::smooth_l1_loss_backward": "the kernel's comparisons: Python's give 0 for two equal operands with beta 0",
    "aten::softshrink_backward": NO_ENTRY,
    "aten::std.correction": PARTS,
    "aten::std_mean.correction": PARTS,
    "aten::var.correction": PARTS,
    "aten::var_mean.correction": PARTS,
}
# Since 2.14 Python makes a tensor of the number first, in half precision. The numbers are the same without it: comparison and
# product round it to the type of x themselves.
if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 14):
    DIFFERENT["aten::softshrink"] = "no scalar_tensor of lambda in half precision"

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


@functools.cache
def decompositions_of(op):
    return get_decompositions([op])


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

    graph = make_fx(call, decomposition_table=decompositions_of(op))(*tensors).graph
    if simplify:
        graph.eliminate_dead_code()
        graph = fx_graph_cse(graph)
    targets = [n.target for n in graph.nodes if n.op == "call_function" and isinstance(n.target, torch._ops.OpOverload)]
    return count((t.name(), is_view(t)) for t in targets)


def is_needed(line, seen):
    """Double gives what float gives, and so do calls that differ in sizes or numbers alone, as ours has it."""
    tensors = [o for o in line["operands"] if isinstance(o, dict) and "type" in o]
    if any(t["type"] == "Double" for t in tensors):
        return False
    kinds = [(t["type"], 0 in t["sizes"]) for t in tensors]
    key = json.dumps([line["op"], line["operators"], kinds, [o is None for o in line["operands"]]])
    new = key not in seen
    seen.add(key)
    return new


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
    seen = set()
    lines = [line for line in map(json.loads, output.splitlines()) if is_needed(line, seen)]
    assert len(lines) > 300, f"only {len(lines)} calls"
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
