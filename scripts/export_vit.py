#!/usr/bin/env python3
"""Exports ViT-B/16 at 224 x 224 (86.6 million parameters, 1000 classes) as a .pt2 file.

Plain PyTorch: a convolution makes patches, a class token and positions are added, then twelve pre-norm blocks with one
linear for queries, keys and values. The weights are those of a fixed seed: times do not depend on them, and the answers
can still be compared.
"""
import argparse
import pathlib

import torch
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention

IMAGE, PATCH = 224, 16
MAX_BATCH = 64


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = qkv.unbind(0)
        y = scaled_dot_product_attention(query, key, value)
        return self.proj(y.transpose(1, 2).reshape(batch, tokens, width))


class Mlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        return self.fc2(gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.mlp = Mlp(width, 4 * width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """forward(pixels: float32 [batch, 3, image, image]) -> class scores [batch, classes]"""

    def __init__(self, width=768, heads=12, depth=12, image=IMAGE, classes=1000):
        super().__init__()
        self.image = image
        self.patch_embed = nn.Conv2d(3, width, PATCH, PATCH)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, (image // PATCH) ** 2 + 1, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)

    def forward(self, pixels):
        x = self.patch_embed(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def vit(**sizes):
    """The model in evaluation mode, the same weights at every call."""
    torch.manual_seed(0)
    model = VisionTransformer(**sizes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.02)  # as ViTs are initialised
        for layer in model.modules():
            if isinstance(layer, nn.LayerNorm):
                layer.weight.normal_(1, 0.1)
    return model.eval().requires_grad_(False)


def images(batch, image=IMAGE, seed=1):
    return torch.randn(batch, 3, image, image, generator=torch.Generator().manual_seed(seed))


def export(model):
    batch = torch.export.Dim("batch", min=1, max=MAX_BATCH)
    return torch.export.export(model, (images(2, model.image),), dynamic_shapes={"pixels": {0: batch}})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="OUT.pt2")
    parser.add_argument("--tiny", action="store_true", help="a small one of the same kind, for tests")
    args = parser.parse_args()
    model = vit(width=64, heads=4, depth=2, image=64, classes=10) if args.tiny else vit()
    args.output.parent.mkdir(parents=True, exist_ok=True)
    # Written beside the target and renamed: an interrupted export leaves no half file that a later run would take.
    part = args.output.with_name(f"{args.output.stem}.part.pt2")
    torch.export.save(export(model), part)
    part.replace(args.output)


if __name__ == "__main__":
    main()
