"""Samples: calls of a model, in the forms in which programs have them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import torch

Sample = tuple[tuple[Any, ...], dict[str, Any]]

_MOST_SAMPLES = 1000  # a data loader may never end


def to_sample(value: Any) -> Sample:
    """One call as (args, kwargs).

    A tensor is the only argument, a tuple or list all positional ones, a dict the keyword ones; a pair of a tuple and
    a dict is both.

    >>> import torch
    >>> to_sample({"x": 1})
    ((), {'x': 1})
    """
    if isinstance(value, dict):
        return (), dict(value)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple) and isinstance(value[1], dict):
        return value[0], dict(value[1])
    if isinstance(value, (tuple, list)):
        return tuple(value), {}
    return (value,), {}


def to_samples(samples: Any) -> list[Sample]:
    """A list (or another iterable, such as a DataLoader) of calls; a tensor, tuple or dict is one call.

    >>> import torch
    >>> len(to_samples([torch.ones(1), torch.ones(2)]))
    2
    """
    if samples is None:
        return []
    if isinstance(samples, (torch.Tensor, tuple, dict)):
        return [to_sample(samples)]
    if not isinstance(samples, Iterable):
        raise TypeError(f"samples is of type {type(samples).__name__}: give a list of calls, each a tensor, a tuple or a dict")
    found = [to_sample(sample) for sample in itertools.islice(samples, _MOST_SAMPLES + 1)]
    if len(found) > _MOST_SAMPLES:
        raise ValueError(f"samples has more than {_MOST_SAMPLES} calls: give fewer, for example itertools.islice(loader, 32)")
    return found


def dynamic_shapes(samples: list[Sample]) -> tuple[Any, ...] | None:
    """What torch.export is told of sizes: those that differ from sample to sample may change. None: no size differs.

    The first part is for positional arguments, the second for keyword arguments.

    >>> import torch
    >>> list(dynamic_shapes(to_samples([torch.ones(2, 3), torch.ones(4, 3)]))[0][0])
    [0]
    """
    first, *others = samples
    specs = torch.utils._pytree.tree_map(lambda *leaves: _differing(leaves), first, *others) if others else None
    if specs is None or not any(torch.utils._pytree.tree_leaves(specs)):
        return None
    return specs


def _differing(leaves: tuple[Any, ...]) -> dict[int, Any] | None:
    if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
        return None
    ranks = {leaf.dim() for leaf in leaves}
    if len(ranks) > 1:
        raise ValueError(f"samples differ in the number of dimensions of a tensor: {sorted(ranks)}")
    dims = [dim for dim in range(ranks.pop()) if len({leaf.shape[dim] for leaf in leaves}) > 1]
    return {dim: torch.export.Dim.DYNAMIC for dim in dims} or None
