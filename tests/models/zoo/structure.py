"""Nested inputs and outputs: how the caller's containers map to the flat inputs and outputs of the graph."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn
from torch.utils import _pytree as pytree

from .case import Call, Case, case


class NestedOutputs(nn.Module):
    """Tuples, lists and dicts in each other, with None and Python numbers between the tensors."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        y = self.linear(x)
        return {
            "logits": y,
            "states": (x, [y.exp(), None, {"deep": y.sum(), "count": 7}]),
            "empty": (),
            "loss": None,
            "scale": 0.5,
            "flag": True,
            3: y[0],
        }


@case("strict", "decomposed")
def dict_outputs() -> Case:
    return Case(NestedOutputs(), (torch.randn(2, 4),))


class OrderedOutputs(nn.Module):
    def forward(self, x):
        return OrderedDict(second=x + 2, first=x + 1), [x]


@case()
def ordered_dict_outputs() -> Case:
    return Case(OrderedOutputs(), (torch.randn(3),))


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


pytree._register_namedtuple(Pair, serialized_type_name="zoo.Pair")


class PairOutputs(nn.Module):
    def forward(self, x):
        return Pair(x + 1, x + 2), [Pair(x, x.sum())]


@case("decomposed")
def namedtuple_outputs() -> Case:
    """The file lists the fields of a namedtuple: paths are written with their names."""
    return Case(PairOutputs(), (torch.randn(3),))


@dataclass
class ModelOutput:
    logits: torch.Tensor
    loss: torch.Tensor | None = None
    states: tuple[torch.Tensor, ...] | None = None


torch.export.register_dataclass(ModelOutput, serialized_type_name="zoo.ModelOutput")


class DataclassOutputs(nn.Module):
    def forward(self, x):
        return ModelOutput(x.exp(), states=(x, -x))


@case("strict", "decomposed")
def dataclass_outputs() -> Case:
    """As Hugging Face models return: a class of the user's, whose field without a value is left out of the flat outputs."""
    return Case(DataclassOutputs(), (torch.randn(3),))


class ListOfOne(nn.Module):
    def forward(self, x):
        return [x.neg()]


@case()
def list_output() -> Case:
    return Case(ListOfOne(), (torch.randn(3),))


class QuotedKeys(nn.Module):
    """Keys that need care in JSON and in a path."""

    def forward(self, x):
        return {"it's": x + 1, 'a "b"': x + 2, "naïve\\path": x + 3, "": x + 4}


@case()
def quoted_keys() -> Case:
    return Case(QuotedKeys(), (torch.randn(2),))


class KeywordInputs(nn.Module):
    def forward(self, x, *, scale, options, bias=None):
        y = x * scale + options["shift"][0] - options["shift"][1]
        return y if bias is None else y + bias


@case("strict", "decomposed")
def keyword_inputs() -> Case:
    """Keywords in another order than the signature's, nested, and one left at its default."""
    def kwargs():
        return {"options": {"shift": [torch.randn(4), torch.randn(1)]}, "scale": torch.randn(4)}

    return Case(KeywordInputs(), (torch.randn(2, 4),), kwargs(), calls=[Call((torch.randn(2, 4),), kwargs())])


class ScalarInputs(nn.Module):
    """Python values as inputs become constants of the graph: numbers, a string, None."""

    def forward(self, x, power, mode, unused=None, *, negate=False, shift=0.0):
        y = x.pow(power) + shift
        y = torch.nn.functional.pad(y, (1, 1), mode=mode)
        return -y if negate else y


@case("strict")
def scalar_inputs() -> Case:
    return Case(ScalarInputs(), (torch.randn(1, 2, 4), 2, "reflect", None), {"negate": True, "shift": 0.25})


class NestedInputs(nn.Module):
    def forward(self, pair, *rest, **named):
        (x, y), table = pair
        total = x + y + table["a"] * table["b"]
        for value in rest:
            total = total + value
        return {name: total + value for name, value in named.items()}


@case("decomposed")
def nested_inputs() -> Case:
    """Nested positional inputs, *args and **kwargs."""
    t = lambda: torch.randn(3)  # noqa: E731
    return Case(NestedInputs(), (((t(), t()), {"a": t(), "b": t()}), t(), t()), {"left": t(), "right": t()})


class OneInputTwice(nn.Module):
    def forward(self, x, y):
        return x @ y.T, x.shape[1], 2 * x.shape[0]


@case()
def same_tensor_twice() -> Case:
    """The caller may give one tensor for two inputs; the graph still has two."""
    x = torch.randn(3, 4)
    return Case(OneInputTwice(), (x, x))


class Permuted(nn.Module):
    def forward(self, x):
        return x.t(), x[:, ::2], x.expand(2, 3, 4)


@case()
def strided_outputs() -> Case:
    """Outputs that are views of an input, not contiguous, or with a stride of 0. The input is not contiguous either."""
    return Case(Permuted(), (torch.randn(4, 3).t(),))
