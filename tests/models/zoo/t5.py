"""A T5-style encoder and decoder: relative position buckets, cross-attention, RMS norm without a bias."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .case import Call, Case, case

WIDTH, HEADS, SIZE, VOCABULARY, BUCKETS, FARTHEST = 32, 4, 8, 48, 8, 20


def bucket_of(distance, two_way: bool):
    """Near distances get a bucket each, far ones share buckets that grow with the logarithm."""
    buckets, start = BUCKETS, 0
    if two_way:
        buckets //= 2
        start = (distance > 0).long() * buckets
        distance = distance.abs()
    else:
        distance = -torch.minimum(distance, torch.zeros_like(distance))
    near = buckets // 2
    far = near + (torch.log(distance.float() / near) / math.log(FARTHEST / near) * (buckets - near)).long()
    far = torch.min(far, torch.full_like(far, buckets - 1))
    return start + torch.where(distance < near, distance, far)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, HEADS * SIZE, bias=False) for _ in range(3))
        self.out = nn.Linear(HEADS * SIZE, WIDTH, bias=False)

    def forward(self, x, memory, bias):
        q, k, v = (part.unflatten(-1, (HEADS, SIZE)).transpose(1, 2) for part in (self.q(x), self.k(memory), self.v(memory)))
        scores = torch.matmul(q, k.transpose(3, 2)) + bias  # T5 does not scale: its weights are initialised for that
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, is_decoder: bool):
        super().__init__()
        self.norm1, self.attention = nn.RMSNorm(WIDTH, eps=1e-6), Attention()
        self.cross = Attention() if is_decoder else None
        self.norm2, self.norm3 = nn.RMSNorm(WIDTH, eps=1e-6), nn.RMSNorm(WIDTH, eps=1e-6)
        self.wi, self.wo = nn.Linear(WIDTH, 2 * WIDTH, bias=False), nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x, bias, memory=None, memory_bias=None):
        y = self.norm1(x)
        x = x + self.attention(y, y, bias)
        if self.cross is not None:
            x = x + self.cross(self.norm2(x), memory, memory_bias)
        return x + self.wo(F.relu(self.wi(self.norm3(x))))


class Stack(nn.Module):
    def __init__(self, is_decoder: bool):
        super().__init__()
        self.is_decoder = is_decoder
        self.relative_bias = nn.Embedding(BUCKETS, HEADS)
        self.block = Block(is_decoder)
        self.norm = nn.RMSNorm(WIDTH, eps=1e-6)

    def forward(self, x, mask, memory=None, memory_bias=None):
        steps = torch.arange(x.shape[1])
        distance = steps[None, :] - steps[:, None]
        bias = self.relative_bias(bucket_of(distance, not self.is_decoder)).permute(2, 0, 1)[None] + mask
        return self.norm(self.block(x, bias, memory, memory_bias))


class T5(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Embedding(VOCABULARY, WIDTH)
        self.encoder, self.decoder = Stack(False), Stack(True)

    def forward(self, input_ids, attention_mask, decoder_input_ids):
        padding = (1.0 - attention_mask[:, None, None, :]) * -1e9
        memory = self.encoder(self.shared(input_ids), padding)
        steps = torch.arange(decoder_input_ids.shape[1])
        causal = torch.zeros(steps.shape[0], steps.shape[0]).masked_fill(steps[None, :] > steps[:, None], -torch.inf)
        y = self.decoder(self.shared(decoder_input_ids), causal, memory, padding)
        return {"logits": F.linear(y * WIDTH**-0.5, self.shared.weight), "encoder_last_hidden_state": memory}


def t5_call(source: int, target: int) -> Call:
    mask = (torch.arange(source) < torch.tensor([[source], [max(1, source - 2)]])).float()
    ids = torch.randint(VOCABULARY, (2, source)), torch.randint(VOCABULARY, (2, target))
    return Call(kwargs={"input_ids": ids[0], "attention_mask": mask, "decoder_input_ids": ids[1]})


@case()
def t5() -> Case:
    source, target = torch.export.Dim("source", min=2, max=32), torch.export.Dim("target", min=2, max=32)
    return Case(
        T5(), kwargs=t5_call(9, 6).kwargs, calls=[t5_call(32, 2), t5_call(2, 32)],
        dynamic_shapes={"input_ids": {1: source}, "attention_mask": {1: source}, "decoder_input_ids": {1: target}})
