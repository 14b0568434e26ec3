"""Higher-order operators: cond, while_loop, map, scan, alone and in each other."""

import torch
from torch import nn
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from .case import Call, Case, case


class Cond(nn.Module):
    """Each branch has its own layer; both branches return two tensors."""

    def __init__(self):
        super().__init__()
        self.large, self.small = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return torch.cond(
            x.sum() > 0, lambda x: (self.large(x).relu(), x + 1), lambda x: (self.small(x).tanh(), x - 1), (x,))


@case("strict", "decomposed")
def cond() -> Case:
    return Case(Cond(), (torch.rand(3, 4),), calls=[Call((-torch.rand(3, 4),)), Call((torch.rand(3, 4),))])


class CondOnSize(nn.Module):
    """A branch on a symbolic size stays a branch: the predicate is a symbolic bool."""

    def forward(self, x):
        return torch.cond(x.shape[0] > 5, lambda x: x.cos(), lambda x: x.sin() * x.shape[0], (x,))


@case("decomposed")
def cond_on_size() -> Case:
    return Case(
        CondOnSize(), (torch.randn(4, 2),), dynamic_shapes=({0: torch.export.Dim("rows", min=2, max=20)},),
        calls=[Call((torch.randn(6, 2),)), Call((torch.randn(5, 2),))])


class NestedCond(nn.Module):
    def forward(self, x, low, high):
        def inner(x):
            return torch.cond(x.max() > high, lambda x: x.clamp(max=1.0), lambda x: x * 2, (x,))

        return torch.cond(x.min() < low, lambda x: x.abs(), inner, (x,))


@case()
def nested_cond() -> Case:
    low, high = torch.tensor(-1.0), torch.tensor(1.0)
    return Case(
        NestedCond(), (torch.tensor([0.0, 5.0]), low, high),
        calls=[Call((torch.tensor([-2.0, 0.0]), low, high)), Call((torch.tensor([0.0, 0.5]), low, high))])


class WhileLoop(nn.Module):
    """Newton's square root, until it is close enough; the layer is a closure of the body."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, count, x):
        def go_on(count, x):
            return count < 5

        def step(count, x):
            return count + 1, self.linear(x).sigmoid()

        return while_loop(go_on, step, (count, x))


@case("strict", "decomposed")
def while_loop_case() -> Case:
    """The second call runs the body once, the third not at all."""
    x = torch.randn(2, 3)
    return Case(WhileLoop(), (torch.tensor(0), x), calls=[Call((torch.tensor(4), x)), Call((torch.tensor(9), x))])


class MapRows(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(4))

    def forward(self, rows, shift):
        return map_over(lambda row, shift: (row * self.scale + shift).softmax(0), rows, shift)


@case("strict", "decomposed")
def map_rows() -> Case:
    return Case(MapRows(), (torch.randn(5, 4), torch.randn(4)))


class ScanRnn(nn.Module):
    """A recurrent network written as a scan, forwards and backwards."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4) / 2)

    def forward(self, start, steps):
        def step(state, x):
            state = torch.tanh(state @ self.weight + x)
            return state, state * 2

        last, states = scan(step, start, steps)
        first, backwards = scan(step, start, steps, reverse=True)
        return last, states, first, backwards


@case("decomposed")
def scan_rnn() -> Case:
    return Case(ScanRnn(), (torch.randn(3, 4), torch.randn(6, 3, 4)))
