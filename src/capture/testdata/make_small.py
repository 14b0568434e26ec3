"""Writes small.pt2, which pt2_broken_test.cpp takes apart, and wrapped.pt2. Run it with torch 2.13: python make_small.py"""

import pathlib

import torch
from torch import nn


class Small(nn.Module):
    """Tied weights, a mutated buffer, a tensor constant, a list result, subgraphs, nested arguments and results."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("scale", torch.full((4,), 0.5), persistent=False)
        self.shift = torch.arange(4.0)

    def forward(self, x, pair, *, flag=True):
        self.count.add_(1)
        hidden = self.first(x) * self.scale + self.shift
        hidden = hidden + self.second(pair[0])
        left, right = torch.split(hidden, 2, dim=1)
        chosen = torch.cond(self.count.sum() > 0, lambda t: (t.sin(),), lambda t: (t.cos(),), (left,))
        return {"chosen": chosen[0], "right": (right, pair[1]["k"] + 1, None)}


class Wrapped(nn.Module):
    """The wrappers that are inlined: no_grad, autocast off, autocast on (with an operator of each of its rules)."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            y = self.layer(x)
        with torch.autocast("cpu", enabled=False):
            z = y @ x.T
        with torch.autocast("cpu", dtype=torch.bfloat16):
            low = self.layer(x).relu()
            w = torch.cat([low, y]) + torch.nn.functional.mse_loss(low, y)
        return z, low, w


def strip_traces(graph_module):
    """Traces name files of the machine that exported; the test needs none of them."""
    for module in graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                for key in ("stack_trace", "from_node", "source_fn_stack", "torch_fn", "custom"):
                    node.meta.pop(key, None)


def save(program, name):
    strip_traces(program.graph_module)
    torch.export.save(program, str(pathlib.Path(__file__).parent / name))


def main():
    torch.manual_seed(0)
    args = (torch.randn(3, 4), [torch.randn(3, 4), {"k": torch.ones(2, dtype=torch.int64)}])
    batch = torch.export.Dim("batch", min=2, max=64)
    shapes = {"x": {0: batch}, "pair": [{0: batch}, {"k": None}], "flag": None}
    program = torch.export.export(Small().eval(), args, {"flag": True}, dynamic_shapes=shapes, strict=False)
    save(program.run_decompositions({}), "small.pt2")
    save(torch.export.export(Wrapped().eval(), (torch.randn(2, 4),)), "wrapped.pt2")


if __name__ == "__main__":
    main()
