"""Backends with a lifecycle, in AITune's terms: build, activate, deactivate, deploy, infer, to_dict, from_dict."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

import torch

from halftone import _C
from halftone._configs import Config, to_quant_config
from halftone._model import GraphModule, PathLike, to_graph
from halftone._samples import Sample, to_samples


class Backend:
    """A way to run a model, ready when it is built: INIT → ACTIVE ⇄ INACTIVE; a loaded one → DEPLOYED.

    `type` is a name of `backend_types()`. Calls that the state does not allow are errors with the reason.

    >>> import halftone, torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 8))
    >>> backend = halftone.Backend("HalftoneBackend")
    >>> backend.build(model, None, [torch.ones(1, 64)]).state
    'ACTIVE'
    >>> backend.infer(torch.ones(1, 64)).shape
    torch.Size([1, 8])
    """

    TYPE = ""  # of subclasses, which know theirs

    def __init__(self, type: str = "", config: Mapping[str, Any] | None = None) -> None:  # noqa: A002
        self._backend = _C.Backend(type or self.TYPE or "HalftoneBackend", json.dumps(dict(config or {})))
        self._model: torch.nn.Module | None = None

    @classmethod
    def _of(cls, backend: _C.Backend) -> Backend:
        self = Backend.__new__(_CLASSES.get(backend.name, Backend))
        self._backend, self._model = backend, None
        return self

    @classmethod
    def _load(cls, path: str, *, map: bool = True, verify: bool = True) -> Backend:  # noqa: A002
        return cls._of(_C.load_backend(path, map=map, verify=verify))

    @classmethod
    def load(cls, path: PathLike) -> Backend:
        """A saved backend in the state CHECKPOINT_LOADED: `activate()` or `deploy()` comes next."""
        return cls._load(os.fspath(path))

    def build(
        self,
        module: torch.nn.Module | GraphModule,
        graph_spec: Any = None,
        data: Any = None,
        device: Any = "cpu",
        cache_dir: PathLike | None = None,
    ) -> Backend:
        """Makes the model ready; only once. A Python module is exported for the calls in `data`, and stays as it is.

        `graph_spec` is there for AITune's signature: sizes that differ from sample to sample may change.
        """
        if graph_spec is not None and not isinstance(graph_spec, str):
            raise TypeError("graph_spec must be None: the sizes that may change are those that differ in data")
        graph = to_graph(module, data)
        calls: list[Sample] = to_samples(data)
        self._backend.build(graph, calls, device, os.fspath(cache_dir or ""))
        self._model = module if isinstance(module, torch.nn.Module) else None
        return self

    def activate(self) -> None:
        """From INACTIVE and CHECKPOINT_LOADED; nothing happens in ACTIVE."""
        self._backend.activate()

    def deactivate(self) -> None:
        """From ACTIVE: frees the converted model."""
        self._backend.deactivate()

    def deploy(self, device: Any = None) -> None:
        """From CHECKPOINT_LOADED, and final."""
        self._backend.deploy(device)

    def infer(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the model, without gradients; only in ACTIVE and DEPLOYED. Safe from many threads."""
        return self._backend.infer(*args, **kwargs)

    __call__ = infer

    def save(self, path: PathLike, *, packed: bool = False, original: bool = False) -> None:
        """Writes model, config, samples and tuning record as one .ht file; `halftone.load` brings it back."""
        self._backend.save(os.fspath(path), packed=packed, original=original)

    def to_dict(self) -> dict[str, Any]:
        """Type, config, the original module's tensors, samples and device."""
        return self._backend.to_dict()

    @classmethod
    def from_dict(cls, module: torch.nn.Module | GraphModule | None, state_dict: Mapping[str, Any]) -> Backend:
        """In the state CHECKPOINT_LOADED. `module` takes the tensors that it and the dict both have."""
        state = dict(state_dict)
        wanted = cls.TYPE or state.get("type", "")
        if isinstance(module, torch.nn.Module):
            if state.get("type") == wanted:
                module.load_state_dict(state["module"], strict=False)
            backend = cls._of(_C.Backend.from_dict(to_graph(module, state["data"]), state, wanted))
            backend._model = module
            return backend
        return cls._of(_C.Backend.from_dict(module, state, wanted))

    @property
    def state(self) -> str:
        """INIT, ACTIVE, INACTIVE, CHECKPOINT_LOADED or DEPLOYED."""
        return self._backend.state

    @property
    def is_active(self) -> bool:
        """In ACTIVE only, not in DEPLOYED."""
        return self._backend.is_active

    @property
    def name(self) -> str:
        """The type's name."""
        return self._backend.name

    @property
    def device(self) -> torch.device:
        """Where it runs: the CPU."""
        return self._backend.device

    @property
    def config(self) -> dict[str, Any]:
        """Every field of the config."""
        return json.loads(self._backend.config_json)

    @property
    def tuning(self) -> dict[str, Any] | None:
        """How it was tuned; None: it was not."""
        return json.loads(self._backend.tuning) if self._backend.tuning else None

    def describe(self) -> str:
        """The type and what differs from its defaults."""
        return self._backend.describe()

    def key(self) -> str:
        """The type and a hash of the config: the same for equal configs."""
        return self._backend.key()

    def __repr__(self) -> str:
        return f"<{self.describe()}, {self.state}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        from halftone._errors import make_error

        raise make_error("unsupported", "a Backend cannot be pickled or copied: save(path) writes it, halftone.load(path) reads it")


@dataclasses.dataclass
class QuantBackendConfig:
    """The config of `QuantBackend`: exactly one of a scheme's name and a config.

    >>> import halftone
    >>> halftone.QuantBackendConfig(quantization="int8dq").describe()
    'quantization_config=Int8DynamicActivationInt8WeightConfig()'
    """

    quantization: str | None = None
    quantization_config: Config | None = None

    def __post_init__(self) -> None:
        if self.quantization is not None and self.quantization_config is not None:
            raise ValueError("Only one of quantization or quantization_config should be provided.")
        if self.quantization is None and self.quantization_config is None:
            raise ValueError("Either quantization or quantization_config should be provided.")
        if self.quantization_config is None:
            self.quantization_config = to_quant_config(self.quantization)

    def _config(self) -> _C.QuantConfig:
        return to_quant_config(self.quantization_config)

    def to_dict(self) -> dict[str, Any]:
        """{"quantization_config": {"type": …, field: …}}."""
        return {"quantization_config": json.loads(self._config().to_json())}

    @classmethod
    def from_dict(cls, state_dict: Mapping[str, Any]) -> QuantBackendConfig:
        """What `to_dict()` gave."""
        return cls(quantization_config=_C.QuantConfig.from_json(json.dumps(state_dict["quantization_config"])))

    def to_json(self, path: PathLike) -> None:
        """Writes the dict to a file."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.to_dict(), file, indent=2)

    def describe(self) -> str:
        """What differs from the defaults."""
        return f"quantization_config={self._config().describe()}"

    def key(self) -> str:
        """The same for equal configs, however they were written."""
        return self._config().key()


class QuantBackend(Backend):
    """AITune's TorchAOBackend with Halftone's formats: quantize_, then Halftone's compiler. No config: fp8wo.

    >>> import halftone, torch
    >>> backend = halftone.QuantBackend(halftone.QuantBackendConfig(quantization="int8dq"))
    >>> backend.build(torch.nn.Sequential(torch.nn.Linear(64, 8)), None, [torch.ones(1, 64)]).is_active
    True
    """

    TYPE = "QuantBackend"

    def __init__(self, config: QuantBackendConfig | None = None) -> None:
        super().__init__(self.TYPE, config.to_dict() if config is not None else {})


TorchAOBackend = QuantBackend
TorchAOBackendConfig = QuantBackendConfig

_CLASSES: dict[str, type[Backend]] = {"QuantBackend": QuantBackend}


def backend_types() -> dict[str, str]:
    """The types of backends, each with a line about it.

    >>> import halftone
    >>> "QuantBackend" in halftone.backend_types()
    True
    """
    return dict(_C.backend_types())
