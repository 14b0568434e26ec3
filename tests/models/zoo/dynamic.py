"""Symbolic sizes: ranges, derived dimensions, arithmetic on sizes, and sizes known only while running."""

import torch
from torch import nn
from torch.export import Dim

from .case import Call, Case, Refusal, case


class SmallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, features):
        return self.layers(features)


@case("strict", "decomposed")
def dynamic_batch() -> Case:
    """Both ends of the range, a size between them, and each way to be refused."""
    return Case(
        SmallNet(), (torch.randn(4, 6),), dynamic_shapes=({0: Dim("batch", min=3, max=33)},),
        calls=[Call((torch.randn(size, 6),)) for size in (3, 33, 17)],
        refused=[
            Refusal((torch.randn(34, 6),), ("features", "34")),
            Refusal((torch.randn(2, 6),), ("features", "2")),
            Refusal((torch.randn(4, 7),), ("features", "7")),
            Refusal((torch.randn(4),), ("features",)),
            Refusal((torch.randn(4, 6, dtype=torch.float64),), ("features",)),
        ])


@case()
def dynamic_from_one() -> Case:
    """A range that starts at 1, and one that has no end."""
    return Case(
        SmallNet(), (torch.randn(4, 6),), dynamic_shapes=({0: Dim("batch", min=1)},),
        calls=[Call((torch.randn(size, 6),)) for size in (1, 500)])


class TwoDims(nn.Module):
    def forward(self, x, y):
        outer = x[:, None, :] * y[None, :, :]
        return outer.reshape(x.shape[0] * y.shape[0], -1), x.new_ones(y.shape[0], x.shape[0] + 1)


@case("strict", "decomposed")
def two_dynamic_dims() -> Case:
    rows, columns = Dim("rows", min=2, max=12), Dim("columns", min=3, max=20)
    return Case(
        TwoDims(), (torch.randn(5, 4), torch.randn(7, 4)), dynamic_shapes=({0: rows}, {0: columns}),
        calls=[Call((torch.randn(r, 4), torch.randn(c, 4))) for r, c in ((2, 3), (12, 20), (2, 20), (9, 9))],
        refused=[Refusal((torch.randn(5, 4), torch.randn(2, 4)), ("y", "2"))])


class SharedDim(nn.Module):
    def forward(self, x, y):
        return x * y


@case()
def shared_dim() -> Case:
    """One symbol in two inputs: sizes that differ must be refused, though each is in its range."""
    size = Dim("size", min=2, max=9)
    return Case(
        SharedDim(), (torch.randn(4), torch.randn(4)), dynamic_shapes=({0: size}, {0: size}),
        calls=[Call((torch.randn(9), torch.randn(9)))],
        refused=[Refusal((torch.randn(4), torch.randn(5)), ("y", "5"))])


class Derived(nn.Module):
    """y has twice the rows of x, z one more than y."""

    def forward(self, x, y, z):
        return x.repeat_interleave(2, dim=0) + y, z[1:] - y


@case("strict", "decomposed")
def derived_dims() -> Case:
    batch = Dim("batch", min=2, max=10)

    def sizes(count: int, off: int = 0) -> tuple:
        return torch.randn(count, 3), torch.randn(2 * count, 3), torch.randn(2 * count + 1 + off, 3)

    return Case(
        Derived(), sizes(4), dynamic_shapes=({0: batch}, {0: 2 * batch}, {0: 2 * batch + 1}),
        calls=[Call(sizes(2)), Call(sizes(10))], refused=[Refusal(sizes(4, off=1), ("z", "10"))])


class SizeArithmetic(nn.Module):
    def forward(self, x, y):
        n, m = x.shape[0], y.shape[0]
        large, small = torch.sym_max(n, m), torch.sym_min(n, m)
        halves = x.new_zeros(n // 2 + 1, m % 3 + 2)
        return {
            "sizes": [large, small, n // 2, m % 3, n * m - n, -n + 2 * m, (n + 1) // 2 * 3, n**2],
            "zeros": halves,
            "filled": torch.full((large, small), 2.0),
            "mean": x.sum() / n + y.sum() * (m / 2),
            "scaled": x / torch.sym_sqrt(n) * torch.sym_float(m),
            "ceiling": x.new_ones(-(-n // 4) + 1, torch.sym_int(m / 2) + 1),
        }


@case("strict", "decomposed")
def size_arithmetic() -> Case:
    n, m = Dim("n", min=2, max=30), Dim("m", min=2, max=30)
    return Case(
        SizeArithmetic(), (torch.randn(7, 2), torch.randn(10, 2)), dynamic_shapes=({0: n}, {0: m}),
        calls=[Call((torch.randn(a, 2), torch.randn(b, 2))) for a, b in ((2, 30), (30, 2), (11, 11))])


class Divisible(nn.Module):
    """Reshaping asks that the size divides by 4: the export keeps that as a guard on the input."""

    def forward(self, x):
        return x.view(-1, 4).sum(1)


@case()
def divisible_dim() -> Case:
    quarter = Dim("quarter", min=2, max=8)
    return Case(
        Divisible(), (torch.randn(12),), dynamic_shapes=({0: 4 * quarter},),
        calls=[Call((torch.randn(8),)), Call((torch.randn(32),))], refused=[Refusal((torch.randn(10),), ("x", "10"))])


class Guarded(nn.Module):
    """A branch on sizes, taken while exporting, is a condition on the inputs from then on."""

    def forward(self, x, y):
        return x.sum() if x.shape[0] + y.shape[0] > 8 else y.sum()


@case()
def guarded_sizes() -> Case:
    return Case(
        Guarded(), (torch.randn(5), torch.randn(6)), dynamic_shapes=({0: Dim.AUTO}, {0: Dim.AUTO}),
        calls=[Call((torch.randn(7), torch.randn(2)))], refused=[Refusal((torch.randn(4), torch.randn(4)), ("x",))])


class DynamicInteger(nn.Module):
    def forward(self, x, count):
        return x.repeat(count), count + 1


@case("decomposed")
def dynamic_integer() -> Case:
    """An integer input that stays an input: given as a 0-d tensor of int64."""
    return Case(
        DynamicInteger(), (torch.randn(3), 4), dynamic_shapes=(None, Dim.DYNAMIC), calls=[Call((torch.randn(3), 9))])


class DataDependent(nn.Module):
    """Sizes known only after an operator has run: nonzero, masks, and numbers read out of a tensor."""

    def forward(self, x, counts):
        found = torch.nonzero(x > 0)
        kept = x[x > 0.5]
        length = counts[1].item()
        torch._check(length >= 1)
        torch._check(length <= 9)
        return found, kept * 2, kept.shape[0], x.new_full((length, 2), 0.25), x.flatten()[:4] * counts[0].item()


@case("strict", "decomposed")
def data_dependent() -> Case:
    return Case(
        DataDependent(), (torch.randn(4, 5), torch.tensor([3, 5])),
        calls=[Call((torch.rand(4, 5), torch.tensor([0, 9]))), Call((-torch.rand(4, 5), torch.tensor([-2, 1])))],
        refused=[Refusal((torch.randn(4, 5), torch.tensor([3, 10])), ("9",))])
