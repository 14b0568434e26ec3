"""``torch.export``'s programs as Halftone's graphs, without a file in between."""

from __future__ import annotations

from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind

from halftone import _C

from .convert import Converter, check_tensor, spec_of
from .trace import refuse_moved_inputs

_KINDS = {
    InputKind.USER_INPUT: "user",
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
}
_OUTPUTS = {
    OutputKind.USER_OUTPUT: "user",
    OutputKind.BUFFER_MUTATION: "buffer_mutation",
    OutputKind.USER_INPUT_MUTATION: "input_mutation",
}


class _ExportedConverter(Converter):
    """The graph's inputs and outputs have kinds of their own here."""

    def __init__(self, program: torch.export.ExportedProgram, name: str) -> None:
        super().__init__(program.graph_module, name)
        self.program = program
        self.inputs = {spec.arg.name: spec for spec in program.graph_signature.input_specs if hasattr(spec.arg, "name")}

    def _placeholder(self, node: torch.fx.Node, position: int) -> None:
        spec = self.inputs.get(node.name)
        kind = _KINDS.get(spec.kind) if spec is not None else None
        if kind is None:
            raise _C.Error(f"input {node.name} is of a kind that Halftone does not have")
        if kind == "user":
            super()._placeholder(node, position)
            return
        if spec.kind == InputKind.BUFFER and spec.persistent is False:
            kind = "non_persistent_buffer"
        tensors = self.program.constants if spec.target in self.program.constants else self.program.state_dict
        tensor = tensors[spec.target].detach()
        check_tensor(spec.target, tensor)
        self.values[node] = self.builder.add_input(spec_of(node.name, tensor), kind, self._unique(spec.target), tensor)

    def _output(self, node: torch.fx.Node) -> None:
        values = [self._operand(node, result) for result in node.args[0]]
        kinds = []
        for spec in self.program.graph_signature.output_specs:
            kind = _OUTPUTS.get(spec.kind)
            if kind is None:
                raise _C.Error(f"an output is of the kind {spec.kind.name}, which Halftone does not have")
            kinds.append((kind, spec.target or "" if kind != "user" else ""))
        self.builder.set_outputs(values, kinds)


def graph_from_exported(program: torch.export.ExportedProgram, name: str = "exported program") -> Any:
    """The graph of ``torch.export.export(model, args)``, with its weights, which are shared and not copied.

    It takes the flat inputs of the program, and gives its flat outputs.

    >>> import torch, halftone
    >>> program = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    >>> "aten::linear" in halftone.graph_from_exported(program).graph_text
    True
    """
    refuse_moved_inputs(program.graph_module)
    return _ExportedConverter(program, name).convert()
