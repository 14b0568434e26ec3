"""Configs of low-bit weights, with the names of torchao.

Where a default differs from torchao's, the docstring says so and why.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from halftone import _C

QuantConfig = _C.QuantConfig


@dataclasses.dataclass(frozen=True)
class WeightConfig:
    """The base of all configs. `to_quant_config()` is what the C++ library takes.

    >>> import halftone
    >>> halftone.Int4WeightOnlyConfig(group_size=64).to_quant_config()
    Int4WeightOnlyConfig(group_size=64)
    """

    def to_quant_config(self) -> _C.QuantConfig:
        """This config as the C++ library's."""
        return QuantConfig.of_type(type(self).__name__, json.dumps(dataclasses.asdict(self)))


@dataclasses.dataclass(frozen=True)
class Int8WeightOnlyConfig(WeightConfig):
    """int8wo: 8-bit weights with a scale for each output channel; activations stay as they are.

    >>> import halftone
    >>> halftone.scheme_name(halftone.Int8WeightOnlyConfig())
    'int8wo'
    """


@dataclasses.dataclass(frozen=True)
class Int8DynamicActivationInt8WeightConfig(WeightConfig):
    """int8dq: weights as in int8wo, activations quantized to 8 bits at run time, row by row.

    torchao's activations are symmetric; here they have a zero point unless `symmetric_activations` says otherwise,
    which loses less. `weight_bits=7` is faster on machines without 8-bit dot products (AVX2).

    >>> import halftone
    >>> halftone.scheme_name(halftone.Int8DynamicActivationInt8WeightConfig())
    'int8dq'
    """

    symmetric_activations: bool = False
    weight_bits: int = 8


@dataclasses.dataclass(frozen=True)
class Int4WeightOnlyConfig(WeightConfig):
    """int4wo: 4-bit weights in groups of `group_size` inputs.

    torchao's default group has 128 weights; 32, the default here, loses less and is as fast. `activations="int8"`
    quantizes activations at run time too; `rounding="search"` looks for the scales with the least squared error.

    >>> import halftone
    >>> halftone.Int4WeightOnlyConfig(group_size=64)
    Int4WeightOnlyConfig(group_size=64, symmetric=True, activations='float', rounding='nearest')
    """

    group_size: int = 32
    symmetric: bool = True
    activations: str = "float"
    rounding: str = "nearest"


@dataclasses.dataclass(frozen=True)
class Float8WeightOnlyConfig(WeightConfig):
    """fp8wo: float8 (e4m3) weights with a scale for each output channel.

    `granularity` is "per_row" or "per_tensor".

    >>> import halftone
    >>> halftone.scheme_name(halftone.Float8WeightOnlyConfig())
    'fp8wo'
    """

    granularity: str = "per_row"


@dataclasses.dataclass(frozen=True)
class Float8DynamicActivationFloat8WeightConfig(WeightConfig):
    """fp8dq: as fp8wo, and activations are rounded to float8 at run time.

    torchao's default is one scale for the tensor; here it is one for each row, which loses less.

    >>> import halftone
    >>> halftone.scheme_name(halftone.Float8DynamicActivationFloat8WeightConfig())
    'fp8dq'
    """

    granularity: str = "per_row"


@dataclasses.dataclass(frozen=True)
class IntxWeightOnlyConfig(WeightConfig):
    """Any width from 2 to 8 bits, stored densely packed. `group_size=0`: one scale for each output channel.

    >>> import halftone
    >>> halftone.IntxWeightOnlyConfig(bits=3).bits
    3
    """

    bits: int = 4
    group_size: int = 32
    symmetric: bool = True


@dataclasses.dataclass(frozen=True)
class Bf16WeightOnlyConfig(WeightConfig):
    """bf16wo: weights rounded to bfloat16, no scales.

    >>> import halftone
    >>> halftone.scheme_name(halftone.Bf16WeightOnlyConfig())
    'bf16wo'
    """


@dataclasses.dataclass(frozen=True)
class NoQuantConfig(WeightConfig):
    """noquant: the layer stays as it is. Useful in `overrides`.

    >>> import halftone
    >>> halftone.NoQuantConfig().to_quant_config().is_noquant()
    True
    """


Config = str | WeightConfig | _C.QuantConfig


def to_quant_config(config: Any) -> _C.QuantConfig:
    """The C++ library's config of a scheme's name, of a config of this module, or of one of its own kind."""
    if isinstance(config, WeightConfig):
        return config.to_quant_config()
    if isinstance(config, QuantConfig):
        return config
    if isinstance(config, str):
        return QuantConfig(config)
    module = type(config).__module__
    if module.split(".")[0] == "torchao":
        raise TypeError(
            f"config is torchao's {type(config).__name__}: its weights have another layout; "
            f"give halftone.{type(config).__name__}, if there is one, or a name of halftone.schemes()"
        )
    raise TypeError(
        f"config is of type {type(config).__name__}; it is a name of halftone.schemes() or a config such as halftone.Int4WeightOnlyConfig()"
    )


def scheme_name(config: Config) -> str:
    """The short name of a config's scheme.

    >>> import halftone
    >>> halftone.scheme_name("int8weightonly")
    'int8wo'
    """
    return to_quant_config(config).scheme


@dataclasses.dataclass(frozen=True)
class Scheme:
    """A row of `schemes()`."""

    names: tuple[str, ...]
    config: _C.QuantConfig
    weights: str
    activations: str
    bits_per_weight: float

    @property
    def name(self) -> str:
        """The short name."""
        return self.names[0]


def schemes() -> list[Scheme]:
    """The built-in schemes, by any of whose names `quantize_` and the others take them.

    >>> import halftone
    >>> "int8dq" in [scheme.name for scheme in halftone.schemes()]
    True
    """
    return [Scheme(tuple(names), *rest) for names, *rest in _C.schemes()]
