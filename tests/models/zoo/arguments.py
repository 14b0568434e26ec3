"""Operators with arguments of unusual kinds: lists, optional tensors in lists, strings, dtypes, memory formats."""

import torch
from torch import nn
from torch.nn import functional as F

from .case import Call, Case, case


class OptionalTensors(nn.Module):
    """Indexing passes a list of tensors with None where a dimension is taken whole."""

    def forward(self, x, rows, columns):
        y = x.clone()
        y[:, rows] = 0.5
        y[..., columns] += 1
        return x[:, rows], x[rows, :, columns], x[:, None, rows], y


@case("strict", "decomposed")
def index_with_none() -> Case:
    return Case(OptionalTensors(), (torch.randn(4, 5, 6), torch.tensor([3, 0, 1]), torch.tensor([5, 2, 2])))


class IntegerLists(nn.Module):
    def forward(self, x):
        first, second, third = x.split([1, 3, 2], dim=1)
        y = F.pad(third.permute(1, 0, 2), [1, 2, 0, 1], value=-1.5).flip([0, 2]).roll([1, -1], [0, 1])
        return first.repeat(2, 1, 3), second.sum([0, 2]), y, x.as_strided([2, 3], [1, 4], 5), x.amax((0, 1)), x.movedim([0], [2])


@case("strict", "decomposed")
def int_lists() -> Case:
    return Case(IntegerLists(), (torch.randn(2, 6, 4),))


class TensorLists(nn.Module):
    def forward(self, parts):
        a, b, c = parts
        rows, columns = torch.meshgrid(a, b, indexing="ij")
        chunks = torch.cat([a, b, c]).chunk(4)
        joined = torch.stack([torch.hstack([a, c]), torch.einsum("i,j->ij", a, b).flatten()[: 2 * len(a)]])
        return rows - columns, chunks, joined, torch.block_diag(a[None], b[None]), torch.cartesian_prod(a, b)


@case("strict", "decomposed")
def tensor_lists() -> Case:
    return Case(TensorLists(), ([torch.randn(3) for _ in range(3)],))


class Kinds(nn.Module):
    """Strings, dtypes, devices, layouts, memory formats, booleans, floats in lists, numbers as scalars."""

    def forward(self, x):
        y = F.interpolate(x, scale_factor=(1.5, 2.0), mode="bicubic", align_corners=True)
        z = F.interpolate(x, size=(3, 5), mode="nearest")
        last = x.to(memory_format=torch.channels_last).contiguous(memory_format=torch.contiguous_format)
        ramp = torch.arange(0.5, 3, 0.25, dtype=torch.float64, device=x.device, layout=torch.strided)
        like = torch.zeros_like(x, dtype=torch.int32), torch.empty_like(x).fill_(3), torch.ones(2, 3, device="cpu")
        return y, z, last.to(torch.float64), ramp, like, F.gelu(x, approximate="tanh"), x.std(dim=(2, 3), correction=0)


@case("strict", "decomposed")
def argument_kinds() -> Case:
    return Case(Kinds(), (torch.randn(2, 3, 4, 4),))


class SeveralResults(nn.Module):
    """Operators with several results, some of them unused."""

    def forward(self, x):
        values, indices = x.topk(2, dim=1)
        ordered, _ = x.sort(dim=1, descending=True)
        _, where = x.max(dim=0)
        variance, mean = torch.var_mean(x, dim=1)
        unique, inverse, counts = torch.unique(x.round(), return_inverse=True, return_counts=True)
        return values, indices, ordered, where, variance, mean, unique, inverse, counts, tuple(torch.aminmax(x))


@case("strict", "decomposed")
def several_results() -> Case:
    return Case(SeveralResults(), (torch.randn(3, 5),), decomposed_tolerance=1e-6)


class Scatter(nn.Module):
    def forward(self, x, index):
        y = torch.zeros(4, 6).scatter_add(1, index, x)
        z = y.index_select(0, index[0, :2]).scatter(1, index[:2], 2.0, reduce="multiply")
        return y, z, torch.gather(x, 1, index.clamp(max=2)), y.index_fill(1, index[0], -1), F.one_hot(index, 6)


@case("decomposed")
def scatter_gather() -> Case:
    return Case(Scatter(), (torch.randn(4, 3), torch.randint(0, 4, (4, 3))))


class Views(nn.Module):
    """Writes through views: the order of the in-place operators is part of the model."""

    def forward(self, x):
        y = x.clone()
        row = y[1]
        row.mul_(3).add_(1)
        y.view(-1)[::5] = 0
        y.transpose(0, 1)[2].sub_(row[0])
        y.diagonal().fill_(7)
        window = y.unfold(1, 2, 1)
        return y, row, window.sum(-1)


@case("strict", "decomposed")
def writes_through_views() -> Case:
    return Case(Views(), (torch.randn(4, 5),), calls=[Call((torch.randn(4, 5),))])
