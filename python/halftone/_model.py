"""Models: opening files, and from torch.export's programs."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import torch

from halftone import _C
from halftone._errors import make_error
from halftone._samples import Sample, dynamic_shapes, to_samples

GraphModule = _C.GraphModule
PathLike = str | os.PathLike[str]


def load(path: PathLike, *, map: bool = True, verify: bool = True) -> Any:  # noqa: A002  the C++ option's name
    """What `save` wrote, ready to be called; also a .pt2 of torch.export.

    A saved backend (of `tune`, say) comes back as a deployed `Backend`, which runs as it was built; any other model as
    a `GraphModule`, which is compiled at its first call. `map=False` reads the file instead of mapping it.

    >>> import halftone, tempfile, torch
    >>> exported = torch.export.export(torch.nn.Linear(4, 2).eval(), (torch.ones(1, 4),))
    >>> path = tempfile.mkdtemp() + "/model.ht"
    >>> halftone.compile_exported(exported).save(path)
    >>> halftone.load(path)(torch.ones(1, 4)).shape
    torch.Size([1, 2])
    """
    from halftone.backend import Backend

    path = os.fspath(path)
    if _C.stored_backend(path):
        backend = Backend._load(path, map=map, verify=verify)
        backend.deploy()
        return backend
    return _C.open_model(path, map=map, verify=verify)


def open_model(path: PathLike, *, map: bool = True, verify: bool = True) -> GraphModule:  # noqa: A002
    """The graph of a .pt2 or .ht file; of a saved backend too. Errors name the file and the place.

    >>> import halftone
    >>> try:
    ...     halftone.open_model("nowhere.ht")
    ... except halftone.Error as error:
    ...     error.code
    'not found'
    """
    return _C.open_model(os.fspath(path), map=map, verify=verify)


def from_pt2(path: PathLike, *, map: bool = True, verify: bool = True) -> GraphModule:  # noqa: A002
    """The model of a file that torch.export.save wrote.

    >>> import halftone, tempfile, torch
    >>> path = tempfile.mkdtemp() + "/relu.pt2"
    >>> torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(3),)), path)
    >>> halftone.from_pt2(path)(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([0., 0., 1.])
    """
    return _C.load_pt2(os.fspath(path), map=map, verify=verify)


def compile_exported(program: torch.export.ExportedProgram, *, name: str | None = None) -> GraphModule:
    """The model of a torch.export program, as `from_pt2` reads it from a file. Weights are copied.

    >>> import halftone, torch
    >>> program = torch.export.export(torch.nn.Tanh(), (torch.zeros(3),))
    >>> halftone.compile_exported(program)(torch.zeros(3))
    tensor([0., 0., 0.])
    """
    if not isinstance(program, torch.export.ExportedProgram):
        raise TypeError(f"program is of type {type(program).__name__}: give what torch.export.export returns")
    # The file is mapped, so that its folder may go at once and its pages are read where they are needed.
    with tempfile.TemporaryDirectory(prefix="halftone-") as folder:
        path = os.path.join(folder, "model.pt2")
        torch.export.save(program, path)
        module = _C.load_pt2(path, verify=False)
    module.name = name or "exported"
    if program.example_inputs is not None:
        args, kwargs = program.example_inputs
        module.set_sample(*args, **kwargs)
    return module


@contextlib.contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """In eval mode, and afterwards each submodule in the mode that it had."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def export(model: torch.nn.Module, samples: Any) -> GraphModule:
    """The graph of a Python module, as it is in eval mode, for calls such as the samples.

    Sizes that differ from sample to sample may change from call to call. Error (unsupported) with torch.export's
    reason if the module cannot be exported.

    >>> import halftone, torch
    >>> graph = halftone.export(torch.nn.Linear(4, 2), [torch.ones(1, 4), torch.ones(3, 4)])
    >>> graph(torch.ones(7, 4)).shape
    torch.Size([7, 2])
    """
    calls = to_samples(samples)
    if not calls:
        raise ValueError("samples is empty: a module is exported for calls such as the samples")
    name = type(model).__name__
    args, kwargs = _example(calls)
    try:
        with _evaluating(model), torch.no_grad():
            program = torch.export.export(model, args, kwargs, dynamic_shapes=_shapes_of(model, calls), strict=False)
    except Exception as error:
        raise make_error("unsupported", f"{name} cannot be exported by torch.export: {_first_lines(error)}") from error
    return compile_exported(program, name=name)


def to_graph(model: Any, samples: Any) -> GraphModule:
    """A GraphModule as it is; a Python module exported for the samples."""
    if isinstance(model, GraphModule):
        return model
    if isinstance(model, torch.nn.Module):
        return export(model, samples)
    if isinstance(model, (str, os.PathLike)):
        return open_model(model)
    raise TypeError(f"model is of type {type(model).__name__}: give a torch.nn.Module, a halftone.GraphModule or a file's path")


def _example(calls: list[Sample]) -> Sample:
    """The call with the fewest sizes of 0 and 1: torch.export takes such sizes for constants."""
    leaves = torch.utils._pytree.tree_leaves
    return min(calls, key=lambda call: sum(size < 2 for leaf in leaves(call) if isinstance(leaf, torch.Tensor) for size in leaf.shape))


def own_samples(graph: GraphModule) -> list[Sample]:
    """The sample inputs that a graph's file holds, as a call."""
    sample = graph.sample
    if sample is None:
        raise ValueError(f"samples is empty, and {graph.name} holds none of its own")
    return [sample]


def _shapes_of(model: torch.nn.Module, calls: list[Sample]) -> Any:
    """Dynamic sizes by argument, as torch.export wants them where there are keyword arguments too."""
    specs = dynamic_shapes(calls)
    if specs is None:
        return None
    args, kwargs = specs
    if not kwargs:
        return args
    import inspect

    names = list(inspect.signature(model.forward).parameters)
    return dict(zip(names, args, strict=False)) | kwargs


def _first_lines(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: " + " ".join(lines[:4]) if lines else type(error).__name__
