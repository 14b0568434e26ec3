"""Models that write: to their buffers, which the next call sees, and to their inputs, which the caller sees."""

import torch
from torch import nn

from .case import Call, Case, case


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("history", torch.zeros(4, 3))

    def forward(self, x):
        self.history.index_copy_(0, self.count[None] % 4, x[None])
        self.count += 1
        return self.count.clone(), self.history.sum(0), x * self.count


@case("strict", "decomposed")
def mutated_buffer() -> Case:
    return Case(Counter(), (torch.randn(3),), calls=[Call((torch.randn(3),)) for _ in range(5)])


class ReturnsItsBuffer(nn.Module):
    """The output is the buffer itself, and a value from before the write."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.ones(3))

    def forward(self, x):
        before = self.total * 1
        self.total.add_(x)
        return self.total, before


@case("decomposed")
def returned_buffer() -> Case:
    return Case(ReturnsItsBuffer(), (torch.randn(3),), calls=[Call((torch.randn(3),)) for _ in range(2)])


class TrainedBatchNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3)
        self.norm = nn.BatchNorm1d(4, momentum=0.3)

    def forward(self, x):
        return self.norm(self.conv(x)), self.norm.running_mean + 0, self.norm.num_batches_tracked + 0


@case("strict", "decomposed")
def batch_norm_training() -> Case:
    """In training mode batch norm writes its running statistics, though its operator's schema does not say so."""
    return Case(
        TrainedBatchNorm(), (torch.randn(5, 2, 8),), train=True, calls=[Call((torch.randn(5, 2, 8),)) for _ in range(2)])


class MutatedInput(nn.Module):
    def forward(self, x, cache, other):
        cache[1:3].add_(x)
        other.mul_(2)
        return cache.sum(), x + 1


@case("strict", "decomposed")
def mutated_input() -> Case:
    def inputs() -> tuple:
        return torch.randn(3), torch.randn(4, 3), torch.randn(2)

    return Case(MutatedInput(), inputs(), calls=[Call(inputs())])


class Buffers(nn.Module):
    """A buffer in the state dict, one that is not, one that is a view of another."""

    def __init__(self):
        super().__init__()
        self.register_buffer("saved", torch.randn(3))
        self.register_buffer("derived", torch.randn(3), persistent=False)
        self.register_buffer("table", torch.randn(4, 3).t(), persistent=False)

    def forward(self, x):
        return x * self.saved + self.derived + self.table @ x.new_ones(4)


@case("strict", "decomposed")
def non_persistent_buffer() -> Case:
    return Case(Buffers(), (torch.randn(2, 3),))
