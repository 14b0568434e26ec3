"""A Llama-style decoder with a static key-value cache: buffers that each call writes and the next one reads."""

import torch
from torch import nn
from torch.nn import functional as F

from .case import Call, Case, Refusal, case

WIDTH, HEADS, KV_HEADS, LONGEST, VOCABULARY = 32, 4, 2, 24, 40
SIZE = WIDTH // HEADS


class RmsNorm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def rotate(x, cos, sin):
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-high, low], dim=-1) * sin


class CachedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(WIDTH, HEADS * SIZE, bias=False)
        self.k = nn.Linear(WIDTH, KV_HEADS * SIZE, bias=False)
        self.v = nn.Linear(WIDTH, KV_HEADS * SIZE, bias=False)
        self.out = nn.Linear(HEADS * SIZE, WIDTH, bias=False)
        self.register_buffer("k_cache", torch.zeros(1, KV_HEADS, LONGEST, SIZE))
        # The other cache is non-persistent: such a buffer lives in another part of the file.
        self.register_buffer("v_cache", torch.zeros(1, KV_HEADS, LONGEST, SIZE), persistent=False)

    def forward(self, x, positions, cos, sin, mask):
        length = x.shape[1]
        q = self.q(x).view(1, length, HEADS, SIZE).transpose(1, 2)
        k = self.k(x).view(1, length, KV_HEADS, SIZE).transpose(1, 2)
        v = self.v(x).view(1, length, KV_HEADS, SIZE).transpose(1, 2)
        self.k_cache.index_copy_(2, positions, rotate(k, cos, sin))
        self.v_cache[:, :, positions] = v
        y = F.scaled_dot_product_attention(
            rotate(q, cos, sin), self.k_cache, self.v_cache, attn_mask=mask, enable_gqa=True)
        return self.out(y.transpose(1, 2).reshape(1, length, WIDTH))


class LlamaLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(WIDTH), RmsNorm(WIDTH)
        self.attention = CachedAttention()
        self.gate, self.up = (nn.Linear(WIDTH, 2 * WIDTH, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x, *attention_inputs):
        x = x + self.attention(self.norm1(x), *attention_inputs)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(LlamaLayer() for _ in range(2))
        self.norm = RmsNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.register_buffer("frequencies", 10000.0 ** -(torch.arange(0, SIZE, 2) / SIZE), persistent=False)

    def forward(self, tokens, positions):
        angles = positions[:, None] * torch.cat([self.frequencies, self.frequencies])
        mask = positions[:, None] >= torch.arange(LONGEST)
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, positions, angles.cos(), angles.sin(), mask)
        return self.head(self.norm(x))


def tokens_at(start: int, count: int) -> Call:
    return Call((torch.randint(VOCABULARY, (1, count)), torch.arange(start, start + count)))


@case("strict", "decomposed")
def llama_decode() -> Case:
    """One token a call. Each answer needs all the earlier calls."""
    first, *rest = (tokens_at(position, 1) for position in range(5))
    return Case(Llama(), first.args, calls=rest)


@case("decomposed")
def llama_prefill() -> Case:
    """Chunks of several lengths: a prompt in two parts, then the last token once more with another one after it."""
    length = torch.export.Dim("length", min=2, max=LONGEST)
    return Case(
        Llama(), tokens_at(0, 6).args, dynamic_shapes=({1: length}, {0: length}),
        calls=[tokens_at(6, 16), tokens_at(21, 2), tokens_at(0, LONGEST)],
        refused=[Refusal((torch.zeros(1, 25, dtype=torch.int64), torch.arange(25)), ("tokens", "25"))])


class RotaryByComplex(nn.Module):
    """The original Llama's rotary embedding: pairs of numbers as one complex number, turned by a table of angles."""

    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(16.0), 10000.0 ** -(torch.arange(0, 8, 2) / 8))
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def forward(self, x):
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * self.turns[: x.shape[1]]).flatten(2)


@case("decomposed")
def rotary_by_complex() -> Case:
    length = torch.export.Dim("length", min=2, max=16)
    return Case(
        RotaryByComplex(), (torch.randn(2, 5, 8),), dynamic_shapes=({1: length},), calls=[Call((torch.randn(2, 16, 8),))])
