"""torch.ao's BackendConfig and QConfigMapping, and Halftone's, both ways.

The form in between is torch.ao's own: the dicts of `to_dict()`, with names instead of classes and functions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from halftone import _C
from halftone._ao_names import config_from_torch, config_to_torch


class BackendConfig:
    """What a low-bit backend can do: patterns, their dtypes, how each is observed.

    >>> import halftone
    >>> config = halftone.BackendConfig.builtin("x86")
    >>> halftone.BackendConfig.from_dict(config.to_dict()) == config
    True
    """

    def __init__(self, description: Mapping[str, Any] | str) -> None:
        text = description if isinstance(description, str) else json.dumps(config_from_torch(description))
        self._json = _C.backend_config(text)

    @classmethod
    def builtin(cls, name: str) -> BackendConfig:
        """ "x86", "native" or "reference".

        >>> import halftone
        >>> halftone.BackendConfig.builtin("native").name
        'native'
        """
        return cls(_C.builtin_backend_config(name))

    @classmethod
    def from_dict(cls, backend_config_dict: Mapping[str, Any]) -> BackendConfig:
        """What `to_dict()` gave: of this class, or of torch.ao's with its classes, functions and dtypes."""
        return cls(backend_config_dict)

    @classmethod
    def from_torch(cls, config: Any) -> BackendConfig:
        """Of a torch.ao.quantization.backend_config.BackendConfig.

        A function that is not torch.ao's, such as a fuser method of your own, goes by its module and name; Halftone
        cannot call it, and `quantize_static` refuses a pattern that needs it.

        >>> import halftone, torch.ao.quantization.quantize_fx
        >>> from torch.ao.quantization.backend_config import get_native_backend_config
        >>> halftone.BackendConfig.from_torch(get_native_backend_config()).name
        'native'
        """
        return cls(config.to_dict())

    @property
    def name(self) -> str:
        """The backend's name."""
        return self.to_dict()["name"]

    def to_dict(self) -> dict[str, Any]:
        """torch.ao's keys; classes, functions and dtypes are names."""
        return json.loads(self._json)

    def to_torch(self) -> Any:
        """A torch.ao.quantization.backend_config.BackendConfig. ValueError for names that torch.ao does not have.

        >>> import halftone
        >>> type(halftone.BackendConfig.builtin("native").to_torch()).__module__
        'torch.ao.quantization.backend_config.backend_config'
        """
        return config_to_torch(self.to_dict())

    def to_json(self) -> str:
        """The file that `halftone ptq --backend-config` reads."""
        return self._json

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BackendConfig) and self._json == other._json

    def __hash__(self) -> int:
        return hash(self._json)

    def __str__(self) -> str:
        return _C.backend_config_text(self._json)

    def __repr__(self) -> str:
        return f"BackendConfig({self.name!r}, {len(self.to_dict()['configs'])} patterns)"
