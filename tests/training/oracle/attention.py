"""C++'s MultiheadAttention and Transformer layers in Python: torch.nn's own compute the same with other operators."""
import torch
from torch import nn
from torch.nn import functional as F


class Linear(nn.Linear):
    """C++'s adds the bias after the product where the input is no matrix; Python's makes it one and calls addmm."""

    def forward(self, x):
        return linear(x, self.weight, self.bias)


def linear(x, weight, bias):
    product = x.matmul(weight.t())
    product += bias
    return product


class Attention(nn.Module):
    """Two products for all heads; Python's would scale and copy in other places, or call a fused operator."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.randn(3 * width, width) * 0.3)
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = Linear(width, width)

    def project(self, query, key):
        weight, bias, width = self.in_proj_weight, self.in_proj_bias, query.shape[-1]
        if query is key:
            return linear(query, weight, bias).chunk(3, -1)
        return (linear(query, weight[:width], bias[:width]), *linear(key, weight[width:], bias[width:]).chunk(2, -1))

    def forward(self, query, key):
        length, batch, width = query.shape
        size = width // self.heads
        q, k, v = self.project(query, key)
        q = q * size**-0.5
        q, k, v = (part.contiguous().view(-1, batch * self.heads, size).transpose(0, 1) for part in (q, k, v))
        mixed = torch.bmm(F.softmax(torch.bmm(q, k.transpose(1, 2)), -1), v)
        return self.out_proj(mixed.transpose(0, 1).contiguous().view(length, batch, width))


class EncoderLayer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.self_attn = Attention(width, heads)
        self.linear1, self.linear2 = Linear(width, inner), Linear(inner, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        x = self.norm1(x + self.self_attn(x, x))
        return self.norm2(x + self.linear2(F.relu(self.linear1(x))))


class DecoderLayer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.self_attn, self.multihead_attn = Attention(width, heads), Attention(width, heads)
        self.linear1, self.linear2 = Linear(width, inner), Linear(inner, width)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))

    def forward(self, x, memory):
        x = self.norm1(x + self.self_attn(x, x))
        x = self.norm2(x + self.multihead_attn(x, memory))
        return self.norm3(x + self.linear2(F.relu(self.linear1(x))))


class FusedAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = Linear(width, 3 * width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return mixed.transpose(1, 2).reshape(batch, length, width)


class CausalBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix = FusedAttention(width, heads)
        self.out, self.up, self.down = Linear(width, width), Linear(width, 4 * width), Linear(4 * width, width)

    def forward(self, x):
        y = x + self.out(self.mix(self.first_norm(x)))
        return y + self.down(F.gelu(self.up(self.second_norm(y))))


class CharacterTransformer(nn.Module):
    def __init__(self, vocabulary, width, layers, length):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(length, width) * 0.02)
        self.blocks = nn.ModuleList(CausalBlock(width, 2) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = Linear(width, vocabulary)

    def forward(self, ids):
        x = self.words(ids) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
