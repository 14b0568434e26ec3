"""Joint graphs of torch.fx in Halftone's text form."""
import json
import operator

import torch

DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.bool: "bool",
          torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8"}
FORMATS = {torch.contiguous_format: "contiguous", torch.preserve_format: "preserve", torch.channels_last: "channels_last"}


def operator_name(target):
    name = target._schema.name
    return name + ("." + target._schema.overload_name if target._schema.overload_name else "")


def type_text(value):
    if not isinstance(value, torch.Tensor):
        return "tensor"
    sizes = ", ".join(map(str, value.shape))
    strides = "; " + ", ".join(map(str, value.stride())) if value.dim() else ""
    return f"{DTYPES[value.dtype]}[{sizes}{strides}]"


def argument_text(argument, names):
    if isinstance(argument, torch.fx.Node):
        return "%" + names.get(argument, argument.name)
    if argument is None:
        return "None"
    if isinstance(argument, bool):
        return "true" if argument else "false"
    if isinstance(argument, (int, float)):
        return repr(argument)
    if isinstance(argument, str):
        return json.dumps(argument)
    if isinstance(argument, torch.dtype):
        return "dtype:" + DTYPES[argument]
    if isinstance(argument, torch.device):
        return f"device:{argument}"
    if isinstance(argument, torch.layout):
        return "layout:" + str(argument).removeprefix("torch.")
    if isinstance(argument, torch.memory_format):
        return "format:" + FORMATS[argument]
    if isinstance(argument, (list, tuple)):
        return "[" + ", ".join(argument_text(item, names) for item in argument) + "]"
    raise ValueError(f"no text for {argument!r}")


def elements(node):
    """index -> getitem node, the first of each index."""
    found = {}
    for user in node.users:
        if user.target is operator.getitem:
            found.setdefault(user.args[1], user)
    return found


class Writer:
    def __init__(self, graph):
        self.graph = graph
        self.names = {}  # nodes whose value has another name

    def outputs_of(self, node):
        """[(name, type)] of an operator with several results or a list of them."""
        taken = elements(node)
        outputs = []
        for index, value in enumerate(node.meta["val"]):
            name = taken[index].name if index in taken else f"{node.name}_unused_{index}"
            outputs.append((name, type_text(value)))
        for user in node.users:
            if user.target is operator.getitem:
                self.names[user] = taken[user.args[1]].name
        return outputs

    def node_lines(self, node):
        operands = [argument_text(argument, self.names) for argument in node.args]
        operands += [f"{name}={argument_text(argument, self.names)}" for name, argument in node.kwargs.items()]
        call = f"{operator_name(node.target)}({', '.join(operands)})"
        returns = node.target._schema.returns
        if isinstance(node.meta["val"], (list, tuple)):
            outputs = ", ".join(f"%{name}: {kind}" for name, kind in self.outputs_of(node))
            if len(returns) == 1:  # a list
                return [f"%{node.name}: list = {call}", f"{outputs} = builtin::unpack(%{node.name})"]
            return [f"{outputs} = {call}"]
        return [f"%{node.name}: {type_text(node.meta['val'])} = {call}"]

    def text(self):
        inputs, lines, results = [], [], []
        for node in self.graph.nodes:
            if node.op == "placeholder":
                inputs.append(f'%{node.name}: user "{node.name}" {type_text(node.meta["val"])}')
            elif node.op == "output":
                results = [argument_text(argument, self.names) for argument in node.args[0]]
            elif node.op != "call_function":
                raise ValueError(f"no text for {node.format_node()}")
            elif node.target is not operator.getitem:
                lines += self.node_lines(node)
        body = "".join(f"  {line}\n" for line in lines)
        return f"graph({', '.join(inputs)}) {{\n{body}  return {', '.join(results)}\n}}\n"


def first_backward(graph):
    """Name of a value that the first node after the forward part gives; empty where there is none."""
    nodes = list(graph.nodes)
    last = max(i for i, node in enumerate(nodes)
               if node.meta.get("partitioner_tag") == "is_forward" or node.name.startswith("primals"))
    for node in nodes[last + 1:]:
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        if isinstance(node.meta["val"], (list, tuple)):
            taken = elements(node)
            return taken[min(taken)].name
        return node.name
    return ""
