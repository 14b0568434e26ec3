"""Small models of many kinds, each with a function that makes its arguments for a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Made = tuple[nn.Module, Callable[[int], tuple[Any, ...]]]


def mlp() -> Made:
    return nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4)), lambda n: (
        torch.randn(n, 8),
    )


class Residual(nn.Module):
    """Convolutions, batch norms and a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.block = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8))
        self.head = nn.Linear(8, 5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.stem(image)
        x = functional.relu(x + self.block(x))
        return self.head(x.mean((2, 3)))


def cnn() -> Made:
    model = Residual()
    for module in model.modules():  # statistics that are not those of a fresh layer
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    return model, lambda n: (torch.randn(n, 3, 12, 12),)


class Block(nn.Module):
    """An encoder layer in plain PyTorch."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.norm1(x + self.out(y.transpose(1, 2).reshape(batch, length, width)))
        return self.norm2(x + self.mlp(x))


def encoder() -> Made:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(50, 32)
            self.places = nn.Embedding(16, 32)
            self.blocks = nn.ModuleList(Block() for _ in range(2))

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
            for block in self.blocks:
                x = block(x)
            return x

    return Encoder(), lambda n: (torch.randint(0, 50, (n, 7)),)


def fast_path_encoder() -> Made:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return nn.TransformerEncoder(layer, 2), lambda n: (torch.randn(n, 5, 16),)


class RmsNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class DecoderBlock(nn.Module):
    """Grouped queries, rotary positions, RMS norm, gated MLP."""

    def __init__(self, width: int = 32, heads: int = 4, groups: int = 2) -> None:
        super().__init__()
        self.heads, self.groups, size = heads, groups, width // heads
        self.q, self.k, self.v = (nn.Linear(width, size * n, bias=False) for n in (heads, groups, groups))
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 64, bias=False), nn.Linear(width, 64, bias=False)
        self.down = nn.Linear(64, width, bias=False)
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        frequencies = 1.0 / 100 ** (torch.arange(0, size, 2) / size)
        angles = torch.outer(torch.arange(32.0), frequencies).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def rotate(self, x: torch.Tensor) -> torch.Tensor:
        length, half = x.shape[2], x.shape[-1] // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * self.cos[:length] + turned * self.sin[:length]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        y = self.norm1(x)
        q, k, v = (
            layer(y).view(batch, length, n, -1).transpose(1, 2)
            for layer, n in ((self.q, self.heads), (self.k, self.groups), (self.v, self.groups))
        )
        y = functional.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


def decoder() -> Made:
    return nn.Sequential(DecoderBlock(), DecoderBlock()), lambda n: (torch.randn(n, 9, 32),)


def bag() -> Made:
    class Bag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bag = nn.EmbeddingBag(40, 16, mode="mean")
            self.head = nn.Linear(16, 3)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.bag(ids))

    return Bag(), lambda n: (torch.randint(0, 40, (n, 6)),)


def unet() -> Made:
    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.Conv2d(2, 8, 3, stride=2, padding=1)
            self.middle = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
            self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
            self.last = nn.Conv2d(6, 2, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.middle(self.down(x))
            y = functional.interpolate(self.up(y), scale_factor=1.0, mode="nearest")
            return self.last(torch.cat((x, y), 1))

    return UNet(), lambda n: (torch.randn(n, 2, 8, 8),)


def lstm() -> Made:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(6, 8)
            self.lstm = nn.LSTM(8, 8, batch_first=True)
            self.head = nn.Linear(8, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y, _ = self.lstm(functional.relu(self.inner(x)))
            return self.head(y)

    return Tagger(), lambda n: (torch.randn(n, 5, 6),)


MODELS: dict[str, Callable[[], Made]] = {
    each.__name__: each for each in (mlp, cnn, encoder, fast_path_encoder, decoder, bag, unet)
}
