"""Layers with quantized weights, which `quantize_` puts into a Python module.

torchao swaps a layer's weight for a tensor subclass; Halftone swaps the layer. The operator in `forward` takes plain
tensors, so dynamo and torch.export see one node with a schema, a state dict holds ordinary tensors, and nothing is
dispatched in Python on the way.
"""

from __future__ import annotations

from typing import Any

import torch

from halftone import _C


def _operator(target: str) -> Any:
    namespace, name = target.split("::")
    return getattr(getattr(torch.ops, namespace), name).default


class _QuantizedLayer(torch.nn.Module):
    """What the layers share: the parts of the weight as buffers, and their config."""

    def __init__(self, quantized: dict[str, Any], operator: str, config: _C.QuantConfig, weight: torch.Tensor) -> None:
        super().__init__()
        self._config_json = config.to_json()
        self._sizes = list(weight.shape)
        self._dtype = weight.dtype
        self._target, self._constants = quantized[operator]
        self._parts = list(quantized["parts"])
        for name, part in quantized["parts"].items():
            self.register_buffer(f"quantized_{name}", part)

    @property
    def sizes(self) -> tuple[int, int]:
        """Of the weight: outputs and inputs, or rows and width."""
        n, k = self._sizes
        return n, k

    def parts(self) -> dict[str, torch.Tensor]:
        """The tensors that stand for the weight, by the names of the operator's arguments."""
        return {name: getattr(self, f"quantized_{name}") for name in self._parts}

    @property
    def config(self) -> _C.QuantConfig:
        """How the weight is quantized."""
        return _C.QuantConfig.from_json(self._config_json)

    def dequantize(self) -> torch.Tensor:
        """The weight in floating point, made anew at each call."""
        return _C.dequantize_weight(self.config, self._sizes, self._dtype, self.parts())

    @property
    def weight(self) -> torch.Tensor:
        """The same as `dequantize()`, for code that reads a layer's weight."""
        return self.dequantize()

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        # .to(dtype), .half(), … are for activations: scales and bytes of a weight keep their types.
        before = self.parts()
        super()._apply(fn, recurse)
        for name, part in before.items():
            now = getattr(self, f"quantized_{name}")
            if now.dtype != part.dtype:
                setattr(self, f"quantized_{name}", part.to(now.device))
        return self


class QuantizedLinear(_QuantizedLayer):
    """torch.nn.Linear with a quantized weight.

    >>> import halftone, torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 32))
    >>> report = halftone.quantize_(model, "int8wo")
    >>> model[0]
    QuantizedLinear(in_features=64, out_features=32, bias=True, config=Int8WeightOnlyConfig())
    """

    def __init__(self, linear: torch.nn.Linear, config: _C.QuantConfig, quantized: dict[str, Any]) -> None:
        super().__init__(quantized, "linear", config, linear.weight)
        self.in_features = linear.in_features
        self.out_features = linear.out_features
        self.register_parameter("bias", linear.bias)
        self.train(linear.training)

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002  nn.Linear's name
        """input · weightᵀ + bias."""
        return _operator(self._target)(x=input, bias=self.bias, **self.parts(), **self._constants)

    def extra_repr(self) -> str:
        """As nn.Linear's, with the config."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, "
            f"config={self.config}"
        )


class QuantizedEmbedding(_QuantizedLayer):
    """torch.nn.Embedding with a quantized table.

    >>> import halftone, torch
    >>> model = torch.nn.Sequential(torch.nn.Embedding(100, 64))
    >>> report = halftone.quantize_(model, "int8wo", embeddings=True)
    >>> model(torch.tensor([[1, 2]])).shape
    torch.Size([1, 2, 64])
    """

    def __init__(self, embedding: torch.nn.Embedding, config: _C.QuantConfig, quantized: dict[str, Any]) -> None:
        super().__init__(quantized, "embedding", config, embedding.weight)
        self.num_embeddings = embedding.num_embeddings
        self.embedding_dim = embedding.embedding_dim
        self.padding_idx = embedding.padding_idx
        self.train(embedding.training)

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002  nn.Embedding's name
        """The rows of the table at these indices."""
        return _operator(self._target)(indices=input, **self.parts(), **self._constants)

    def extra_repr(self) -> str:
        """As nn.Embedding's, with the config."""
        return f"{self.num_embeddings}, {self.embedding_dim}, config={self.config}"
