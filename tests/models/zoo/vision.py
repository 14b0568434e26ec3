"""Image models: convolutions, normalisation, pooling, resizing, patches."""

import torch
from torch import nn
from torch.nn import functional as F

from .case import Case, case


class SmallCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding="same", bias=False), nn.BatchNorm2d(16), nn.LeakyReLU(0.1), nn.AvgPool2d(2))
        self.head = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def with_running_statistics(module: nn.Module) -> nn.Module:
    """Batch norm starts with mean 0 and variance 1, which would hide a running statistic that is not read."""
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_(0, 0.3)
            layer.running_var.uniform_(0.5, 2)
    return module


@case("strict", "decomposed")
def cnn_batch_norm() -> Case:
    return Case(with_running_statistics(SmallCnn()), (torch.randn(2, 3, 16, 16),))


class BasicBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += self.shortcut(x)
        return F.relu(y, inplace=True)


class ResNet18(nn.Module):
    """The layers of ResNet-18, an eighth as wide."""

    def __init__(self, width: int = 8, classes: int = 10):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        blocks, inputs = [], width
        for stage in range(4):
            outputs = width << stage
            blocks += [BasicBlock(inputs, outputs, 1 if stage == 0 else 2), BasicBlock(outputs, outputs, 1)]
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        return self.fc(self.pool(self.blocks(self.stem(x))).flatten(1))


@case("decomposed")
def resnet() -> Case:
    batch = torch.export.Dim("batch", min=1, max=16)
    return Case(
        with_running_statistics(ResNet18()), (torch.randn(2, 3, 64, 64),), dynamic_shapes=({0: batch},),
        # Across 30 layers the values grow past 1: one rounding step is then more than 1e-5.
        decomposed_tolerance=1e-4)


class InvertedResidual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, expand: int):
        super().__init__()
        hidden = inputs * expand
        self.skip = stride == 1 and inputs == outputs
        self.conv = nn.Sequential(
            nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(inplace=True),
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden),
            nn.Hardswish(inplace=True), nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return x + self.conv(x) if self.skip else self.conv(x)


class DepthwiseCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.Hardswish(), InvertedResidual(8, 8, 1, 2), InvertedResidual(8, 16, 2, 3),
            InvertedResidual(16, 16, 1, 3))
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.layers(x).mean([2, 3]))


@case("decomposed")
def depthwise_cnn() -> Case:
    return Case(with_running_statistics(DepthwiseCnn()), (torch.randn(2, 3, 24, 24),))


@case()
def channels_last_cnn() -> Case:
    """Weights and input with the strides of channels_last: both must be kept as the file has them."""
    module = with_running_statistics(SmallCnn()).to(memory_format=torch.channels_last)
    return Case(module, (torch.randn(2, 3, 16, 16).to(memory_format=torch.channels_last),))


class DoubleConv(nn.Sequential):
    def __init__(self, inputs: int, outputs: int):
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(2, outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1), nn.InstanceNorm2d(outputs, affine=True), nn.ReLU())


class UNet(nn.Module):
    """One way up by transposed convolution, one by bilinear resizing, both joined with what was on the way down."""

    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.bottom = DoubleConv(1, 4), DoubleConv(4, 8), DoubleConv(8, 16)
        self.raise2, self.up2 = nn.ConvTranspose2d(16, 8, 2, 2), DoubleConv(16, 8)
        self.up1 = DoubleConv(12, 4)
        self.out = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        bottom = self.bottom(F.max_pool2d(second, 2))
        y = self.up2(torch.cat([second, self.raise2(bottom)], dim=1))
        y = F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.out(self.up1(torch.cat([first, y], dim=1)))


@case("decomposed")
def unet() -> Case:
    # Normalised values reach 3: one rounding step of the decomposed norms is magnified by the layers after them.
    return Case(UNet(), (torch.randn(1, 1, 32, 32),), decomposed_tolerance=1e-4)


class Vit(nn.Module):
    def __init__(self, image: int = 32, patch: int = 8, width: int = 32):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.cls = nn.Parameter(torch.randn(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(VitBlock(width, 4) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls.expand(x.shape[0], -1, -1), tokens], dim=1) + self.position
        for block in self.blocks:
            tokens = block(tokens)
        return self.head(self.norm(tokens)[:, 0])


class VitBlock(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        batch, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, tokens, width)
        x = x + self.proj(y)
        return x + self.mlp(self.norm2(x))


@case("strict", "decomposed")
def vit() -> Case:
    return Case(Vit(), (torch.randn(3, 3, 32, 32),), dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=8)},))
