"""The backend of ``torch.compile``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch._dynamo.exc import TensorifyScalarRestartAnalysis
from torch.fx import GraphModule as FxModule

from .aot import aot_backend
from .convert import try_or_reason
from .inputs import GraphInputs, inputs_of, specialize_module_floats
from .options import BackendOptions
from .program import Program, fall_back
from .records import new_record
from .trace import needs_gradients, pre_dispatch, uses_autocast


def backend(
    gm: FxModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compiles one graph of dynamo's. ``torch.compile(model, backend="halftone")`` calls it.

    ``options``: see ``BackendOptions``. ``mode`` is inductor's; only ``"default"`` is known.

    >>> import torch, halftone
    >>> double = torch.compile(lambda x: x * 2, backend="halftone")
    >>> double(torch.ones(2)).tolist()
    [2.0, 2.0]
    """
    if mode not in (None, "default"):
        raise ValueError(f"backend halftone: mode {mode!r} is inductor's; use options (threads, scheme, …) instead")
    checked = BackendOptions.from_dict(options)
    if specialize_module_floats(gm):
        raise TensorifyScalarRestartAnalysis(restart_reason="halftone: numbers of modules are constants")
    inputs = inputs_of(gm, example_inputs)
    gradients = needs_gradients(gm, example_inputs)
    if gradients and checked.scheme is not None:
        raise ValueError(
            f"backend halftone: scheme {checked.scheme!r} is for inference, but this call needs gradients: call the model "
            "under torch.no_grad() or torch.inference_mode(), or call requires_grad_(False) first"
        )
    if gradients or uses_autocast(gm):
        return _through_aot(gm, example_inputs, inputs, checked)
    return _inference(gm, example_inputs, inputs, checked)


def _inference(
    gm: FxModule, example_inputs: Sequence[Any], inputs: GraphInputs, options: BackendOptions
) -> Callable[..., Any]:
    record = new_record("inference")
    program, reason = try_or_reason(lambda: Program(pre_dispatch(gm, inputs), inputs.sources, options, record))
    if program is None:
        fall_back(record, reason, options)
        return gm.forward
    return program.call(gm.forward)


def _through_aot(
    gm: FxModule, example_inputs: Sequence[Any], inputs: GraphInputs, options: BackendOptions
) -> Callable[..., Any]:
    compiled, reason = try_or_reason(lambda: aot_backend(inputs.sources, options)(gm, example_inputs))
    if compiled is None:
        fall_back(new_record("forward", "aot"), reason, options)
        return gm.forward
    return compiled


def register() -> None:
    """Makes the name known to this process's dynamo. Installed packages have it by their entry point."""
    from torch._dynamo.backends.registry import _BACKENDS, _COMPILER_FNS, register_backend

    # dynamo registers an installed entry point itself when it loads it, and refuses a name that is there already.
    if "halftone" not in _COMPILER_FNS and _BACKENDS.get("halftone") is None:
        register_backend(backend, name="halftone")
