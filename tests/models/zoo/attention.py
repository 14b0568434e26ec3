"""Transformers: PyTorch's own encoder layer, BERT, GPT."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .case import Call, Case, case


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(32), enable_nested_tensor=False)

    def forward(self, x, padding):
        return self.encoder(x, src_key_padding_mask=padding)


@case("strict", "decomposed")
def transformer_encoder() -> Case:
    padding = torch.arange(10) >= torch.tensor([[10], [6], [1]])
    return Case(Encoder(), (torch.randn(3, 10, 32), padding))


class FullTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.Transformer(16, 2, 1, 1, 32)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[0])
        return self.transformer(source, target, tgt_mask=mask, tgt_is_causal=True)


@case()
def transformer_decoder() -> Case:
    return Case(FullTransformer(), (torch.randn(6, 2, 16), torch.randn(4, 2, 16)))


class SelfAttention(nn.Module):
    """Attention written out in matrix products, as BERT and GPT-2 had it before fused kernels."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, self.size).transpose(1, 2)

    def forward(self, x, bias):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        weights = self.dropout(F.softmax(q @ k.transpose(-1, -2) / math.sqrt(self.size) + bias, dim=-1))
        y = (weights @ v).transpose(1, 2).contiguous()
        return self.out(y.view(x.shape[0], x.shape[1], -1))


class BertLayer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.norm1 = nn.LayerNorm(width, eps=1e-12)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x, bias):
        x = self.norm1(x + self.attention(x, bias))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self, vocabulary: int = 60, width: int = 32, longest: int = 64):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.positions = nn.Embedding(longest, width)
        self.types = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer(width, 4) for _ in range(2))
        self.pooler = nn.Linear(width, width)
        self.register_buffer("position_ids", torch.arange(longest).expand(1, -1), persistent=False)

    def forward(self, input_ids, attention_mask, token_type_ids=None):
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        position_ids = self.position_ids[:, : input_ids.shape[1]]
        x = self.norm(self.words(input_ids) + self.types(token_type_ids) + self.positions(position_ids))
        bias = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, bias)
        return {"last_hidden_state": x, "pooler_output": torch.tanh(self.pooler(x[:, 0]))}


def bert_inputs(batch: int, tokens: int) -> dict[str, torch.Tensor]:
    lengths = torch.randint(1, tokens + 1, (batch, 1))
    mask = (torch.arange(tokens) < lengths).long()
    return {"input_ids": torch.randint(1, 60, (batch, tokens)) * mask, "attention_mask": mask}


@case("strict", "decomposed")
def bert() -> Case:
    batch, tokens = torch.export.Dim("batch", min=2, max=8), torch.export.Dim("tokens", min=2, max=64)
    shape = {0: batch, 1: tokens}
    return Case(
        Bert(), kwargs=bert_inputs(3, 12), dynamic_shapes={"input_ids": shape, "attention_mask": shape},
        calls=[Call(kwargs=bert_inputs(2, 2)), Call(kwargs=bert_inputs(8, 64))])


class GptBlock(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    """The causal mask is made in the forward, of -inf: the file must carry infinities."""

    def __init__(self, vocabulary: int = 50, width: int = 32, longest: int = 32):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(GptBlock(width, 4) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        length = tokens.shape[1]
        mask = torch.full((length, length), float("-inf"), device=tokens.device).triu(1)
        x = self.tokens(tokens) + self.positions(torch.arange(length, device=tokens.device))
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))


@case("strict", "decomposed")
def gpt() -> Case:
    length = torch.export.Dim("length", min=2, max=32)
    return Case(
        Gpt(), (torch.randint(50, (2, 9)),), dynamic_shapes=({1: length},),
        calls=[Call((torch.randint(50, (2, 32)),)), Call((torch.randint(50, (2, 2)),))])


class FusedGpt(nn.Module):
    """PyTorch's attention layer with a mask of -inf, and its fused attention with is_causal."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.qkv = nn.Linear(16, 48)
        self.register_buffer("mask", torch.full((8, 8), -torch.inf).triu(1))

    def forward(self, x):
        y, weights = self.attention(x, x, x, attn_mask=self.mask, need_weights=True)
        q, k, v = self.qkv(x + y).view(x.shape[0], 8, 3, 2, 8).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.25), weights


@case("decomposed")
def causal_attention() -> Case:
    return Case(FusedGpt(), (torch.randn(2, 8, 16),))
