"""Operators that are whole layers, taken apart: the compiler knows their parts, not them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

Tensor = torch.Tensor


def _encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Any:
    """What ``nn.TransformerEncoderLayer`` calls in inference; with a mask it stays whole."""
    if mask is not None or src.is_nested:
        return NotImplemented

    def attention(x: Tensor) -> Tensor:
        batch, length = x.shape[:2]
        parts = functional.linear(x, qkv_weight, qkv_bias).chunk(3, -1)
        q, k, v = (part.view(batch, length, num_heads, embed_dim // num_heads).transpose(1, 2) for part in parts)
        y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, embed_dim)
        return functional.linear(y, proj_weight, proj_bias)

    def feed_forward(x: Tensor) -> Tensor:
        hidden = functional.linear(x, ffn_weight_1, ffn_bias_1)
        return functional.linear(functional.gelu(hidden) if use_gelu else functional.relu(hidden), ffn_weight_2, ffn_bias_2)

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), weight, bias, eps)

    if norm_first:
        src = src + attention(norm(src, norm_weight_1, norm_bias_1))
        return src + feed_forward(norm(src, norm_weight_2, norm_bias_2))
    src = norm(src + attention(src), norm_weight_1, norm_bias_1)
    return norm(src + feed_forward(src), norm_weight_2, norm_bias_2)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """For ``make_fx``."""
    return {torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer}
