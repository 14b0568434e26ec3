#!/usr/bin/env python3
"""Exports a suite of models as .pt2 files into a folder, for `halftone bench FOLDER`.

Plain PyTorch with weights of a fixed seed: times do not depend on them, and the answers can still be compared. Every
model takes any batch from 1 to 64.
"""
import argparse
import pathlib
import sys

import torch
from torch import nn
from torch.nn.functional import gelu, max_pool2d, relu

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import export_vit  # noqa: E402

MAX_BATCH = 64


class MixerBlock(nn.Module):
    def __init__(self, width, tokens):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.token1, self.token2 = nn.Linear(tokens, 256), nn.Linear(256, tokens)
        self.channel1, self.channel2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm1(x).transpose(1, 2)
        x = x + self.token2(gelu(self.token1(y))).transpose(1, 2)
        return x + self.channel2(gelu(self.channel1(self.norm2(x))))


class Mixer(nn.Module):
    """Images as patches, mixed by perceptrons alone."""

    def __init__(self, width=512, depth=8, image=224, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.blocks = nn.ModuleList(MixerBlock(width, (image // 16) ** 2) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, pixels):
        x = self.patches(pixels).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.short = nn.Identity() if stride == 1 and inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x):
        y = self.norm2(self.conv2(relu(self.norm1(self.conv1(x)))))
        return relu(y + self.short(x))


class ResNet18(nn.Module):
    """Two blocks at each of four widths."""

    def __init__(self, width=64, classes=1000):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        blocks, inputs = [], width
        for stage in range(4):
            for i in range(2):
                outputs = width << stage
                blocks.append(BasicBlock(inputs, outputs, 2 if stage > 0 and i == 0 else 1))
                inputs = outputs
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(inputs, classes)

    def forward(self, pixels):
        x = max_pool2d(relu(self.norm(self.stem(pixels))), 3, 2, 1)
        return self.head(self.blocks(x).mean((2, 3)))


class LstmTagger(nn.Module):
    """A label for each word."""

    def __init__(self, vocabulary=8192, width=256, layers=2, labels=64):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True, bidirectional=True)
        self.hidden, self.head = nn.Linear(2 * width, 2 * width), nn.Linear(2 * width, labels)

    def forward(self, ids):
        return self.head(torch.tanh(self.hidden(self.lstm(self.words(ids))[0])))


class Autoencoder(nn.Module):
    """Wide linears down to a narrow middle and up again."""

    def __init__(self, width=3072, middle=64):
        super().__init__()
        sizes = [width, width // 2, width // 4, middle, width // 4, width // 2, width]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = gelu(layer(x))
        return self.layers[-1](x)


class TextCnn(nn.Module):
    """Convolutions over words, with windows of three widths."""

    def __init__(self, vocabulary=16384, width=128, filters=256, classes=20):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.windows = nn.ModuleList(nn.Conv1d(width, filters, size) for size in (3, 4, 5))
        self.head = nn.Linear(3 * filters, classes)

    def forward(self, ids):
        text = self.words(ids).transpose(1, 2)
        return self.head(torch.cat([relu(window(text)).amax(2) for window in self.windows], 1))


def floats(*sizes):
    return lambda generator: torch.randn(2, *sizes, generator=generator)


def ids(tokens, vocabulary):
    return lambda generator: torch.randint(vocabulary, (2, tokens), generator=generator)


# Name → (model, its input), in real sizes and in tiny ones.
MODELS = {
    "autoencoder": (lambda: Autoencoder(), floats(3072)),
    "lstm": (lambda: LstmTagger(), ids(48, 8192)),
    "mixer": (lambda: Mixer(), floats(3, 224, 224)),
    "resnet18": (lambda: ResNet18(), floats(3, 160, 160)),
    "text_cnn": (lambda: TextCnn(), ids(128, 16384)),
    "vit": (lambda: export_vit.vit(width=192, heads=3), floats(3, 224, 224)),
}
TINY = {
    "autoencoder": (lambda: Autoencoder(64, 8), floats(64)),
    "lstm": (lambda: LstmTagger(50, 16, 1, 4), ids(6, 50)),
    "mixer": (lambda: Mixer(32, 2, 64, 10), floats(3, 64, 64)),
    "resnet18": (lambda: ResNet18(8, 10), floats(3, 64, 64)),
    "text_cnn": (lambda: TextCnn(50, 16, 8, 4), ids(12, 50)),
    "vit": (lambda: export_vit.vit(width=64, heads=4, depth=2, image=64, classes=10), floats(3, 64, 64)),
}


def export(name, tiny, folder):
    make, example = (TINY if tiny else MODELS)[name]
    torch.manual_seed(0)
    model = make().eval().requires_grad_(False)
    batch = torch.export.Dim("batch", min=1, max=MAX_BATCH)
    program = torch.export.export(model, (example(torch.Generator().manual_seed(1)),), dynamic_shapes=({0: batch},))
    # Written beside the target and renamed: an interrupted export leaves no half file that a later run would take.
    part = folder / f"{name}.part"
    with part.open("wb") as file:
        torch.export.save(program, file)
    part.replace(folder / f"{name}.pt2")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="FOLDER")
    parser.add_argument("--tiny", action="store_true", help="small ones of the same kinds, for tests")
    parser.add_argument("--only", action="append", choices=sorted(MODELS), help="this model; may be given again")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    for name in args.only or sorted(MODELS):
        export(name, args.tiny, args.output)


if __name__ == "__main__":
    main()
