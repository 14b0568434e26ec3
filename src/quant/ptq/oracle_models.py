"""The models of the oracle: small ones of every kind that the built-in configs speak of, weights and data from fixed seeds.

Where Python has several names for one operator, the models use those that torch.ao's configs know (torch.flatten, not
Tensor.flatten): an exported graph cannot tell them apart, so that Halftone quantizes both.
"""
import torch
import torch.nn.functional as F
from torch import nn


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 12, 3, stride=2)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(12 * 3 * 3, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = self.pool(F.relu(self.conv2(x)))
        return self.fc(torch.flatten(x, 1))


class BasicBlock(nn.Module):
    def __init__(self, width, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(width, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or width != out:
            self.downsample = nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(BasicBlock(8, 8, 1), BasicBlock(8, 8, 1))
        self.layer2 = nn.Sequential(BasicBlock(8, 16, 2), BasicBlock(16, 16, 1))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.avgpool(self.layer2(self.layer1(x)))
        return self.fc(torch.flatten(x, 1))


class Bottleneck(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(16, 4, 1, bias=False), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False), nn.BatchNorm2d(4)
        self.conv3, self.bn3 = nn.Conv2d(4, 16, 1, bias=False), nn.BatchNorm2d(16)
        self.stem = nn.Conv2d(3, 16, 3)

    def forward(self, x):
        x = self.stem(x)
        out = F.relu(self.bn1(self.conv1(x)))
        out = F.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return F.relu(torch.add(out, x))


class MobileNet(nn.Module):
    """Depthwise convolutions, relu6 and hardswish."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(inplace=True))
        self.expand = nn.Sequential(nn.Conv2d(8, 24, 1, bias=False), nn.BatchNorm2d(24), nn.Hardswish())
        self.depthwise = nn.Sequential(nn.Conv2d(24, 24, 3, 1, 1, groups=24, bias=False), nn.BatchNorm2d(24), nn.Hardswish())
        self.project = nn.Sequential(nn.Conv2d(24, 8, 1, bias=False), nn.BatchNorm2d(8))
        self.classifier = nn.Sequential(nn.Linear(8, 16), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(16, 10))

    def forward(self, x):
        x = self.stem(x)
        x = x + self.project(self.depthwise(self.expand(x)))
        return self.classifier(x.mean([2, 3]))


class SqueezeExcite(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1)
        self.gate = nn.Hardsigmoid()
        self.last = nn.Conv2d(16, 4, 1)

    def forward(self, x):
        x = self.conv(x)
        scale = torch.sigmoid(self.fc2(F.relu(self.fc1(self.pool(x)))))
        x = x * scale
        return torch.tanh(self.last(x * self.gate(x)))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 32), nn.BatchNorm1d(32), nn.LeakyReLU(0.1),
                                    nn.Linear(32, 16), nn.ELU(), nn.Linear(16, 5))

    def forward(self, x):
        return self.layers(x)


class Net1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv1d(4, 8, 5, padding=2), nn.BatchNorm1d(8)
        self.conv2, self.pool = nn.Conv1d(8, 8, 3, dilation=2), nn.MaxPool1d(2)
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        x = F.avg_pool1d(F.relu(self.conv2(x)), 2)
        return self.fc(x.mean(2))


class Net3d(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv3d(2, 4, 3, padding=1), nn.BatchNorm3d(4)
        self.conv2 = nn.Conv3d(4, 6, 3)
        self.pool = nn.AdaptiveAvgPool3d(1)

    def forward(self, x):
        x = F.max_pool3d(F.relu(self.bn1(self.conv1(x))), 2)
        return torch.flatten(self.pool(F.relu(self.conv2(x))), 1)


class Decoder(nn.Module):
    """Transposed convolutions of one and two dimensions."""

    def __init__(self):
        super().__init__()
        self.up1, self.bn1 = nn.ConvTranspose2d(6, 8, 4, 2, 1), nn.BatchNorm2d(8)
        self.up2 = nn.ConvTranspose2d(8, 4, 2, 2, groups=2)
        self.line = nn.ConvTranspose1d(4, 2, 3)

    def forward(self, x):
        x = F.relu(self.bn1(self.up1(x)))
        x = F.relu(self.up2(x))
        return self.line(torch.flatten(x, 2))


class Inception(nn.Module):
    """Branches that meet in cat, and a cat of a cat."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.b1 = nn.Conv2d(8, 4, 1)
        self.b2 = nn.Sequential(nn.Conv2d(8, 4, 1), nn.ReLU(), nn.Conv2d(4, 6, 3, padding=1), nn.ReLU())
        self.b3 = nn.Conv2d(8, 4, 1)
        self.last = nn.Conv2d(22, 4, 1)

    def forward(self, x):
        x = F.relu(self.stem(x))
        pooled = F.avg_pool2d(x, 3, 1, 1)
        y = torch.cat([F.relu(self.b1(x)), self.b2(x), F.relu(self.b3(pooled))], 1)
        return self.last(torch.cat([y, x], 1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 12, 3, padding=1)
        self.up1, self.up2 = nn.Conv2d(20, 8, 3, padding=1), nn.Conv2d(8, 2, 3, padding=1)

    def forward(self, x):
        a = F.relu(self.down1(x))
        b = F.relu(self.down2(F.max_pool2d(a, 2)))
        up = F.interpolate(b, scale_factor=2, mode="nearest")
        y = F.relu(self.up1(torch.cat([up, a], 1)))
        return self.up2(F.interpolate(y, scale_factor=2, mode="bilinear"))


class Shapes(nn.Module):
    """Operations that only move elements, between quantized ones."""

    def __init__(self):
        super().__init__()
        self.conv, self.pool = nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(4)
        self.fc1, self.fc2 = nn.Linear(8, 12), nn.Linear(48, 6)

    def forward(self, x):
        x = self.pool(self.conv(x))
        x = x.reshape(x.size(0), 8, 16).permute(0, 2, 1)
        x = F.relu(self.fc1(x)).transpose(1, 2).unsqueeze(1)
        x = torch.clamp(F.hardtanh(x, -1.0, 2.0), 0.0, 1.5) + 0.5
        x = x.squeeze(1).contiguous().view(x.size(0), 4, 48)
        return torch.stack([self.fc2(x), self.fc2(x * 2.0)], 1)


class Mixer(nn.Module):
    """Layer norm, softmax and matmul; gelu stays float."""

    def __init__(self):
        super().__init__()
        self.norm, self.softmax = nn.LayerNorm(16), nn.Softmax(-1)
        self.q, self.k, self.v = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        y = self.norm(x)
        scores = torch.matmul(self.q(y), self.k(y).transpose(1, 2)) * 0.25
        x = x + torch.matmul(self.softmax(scores), self.v(y))
        return self.down(F.gelu(self.up(x)))


class Embedded(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.fc = nn.Embedding(50, 16), nn.Linear(16, 4)

    def forward(self, index):
        return self.fc(self.table(index))


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.fc = nn.EmbeddingBag(50, 16, mode="sum", include_last_offset=True), nn.Linear(16, 4)

    def forward(self, index, offsets):
        return self.fc(F.relu(self.table(index, offsets)))


class Functional(nn.Module):
    """Weights as parameters of its own, functional calls, and a part that shall stay float."""

    def __init__(self):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(6, 3, 3, 3) * 0.2)
        self.matrix, self.offset = nn.Parameter(torch.randn(5, 6) * 0.4), nn.Parameter(torch.randn(5))
        self.shift = nn.Parameter(torch.randn(1, 6, 1, 1))
        self.head = nn.Sequential(nn.Linear(5, 5), nn.ReLU())

    def forward(self, x):
        x = F.relu(F.conv2d(x, self.kernel, None, (2, 2), (0, 0), (1, 1), 1))
        x = (x + self.shift).mean([2, 3])
        return self.head(F.linear(x, self.matrix, self.offset))


class Sums(nn.Module):
    """Convolution, sum and relu in one, on either side."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1)
        self.bn = nn.BatchNorm2d(4)

    def forward(self, x):
        y = F.relu(torch.add(self.a(x), x))
        y = torch.add(y, self.bn(self.b(y)))
        return self.c(y)


class Odds(nn.Module):
    """Norms and activations that stand alone, and elements that move."""

    def __init__(self):
        super().__init__()
        self.norm, self.instance, self.prelu = nn.BatchNorm2d(4), nn.InstanceNorm2d(4), nn.PReLU(4)
        self.act, self.shuffle, self.pool = nn.Hardtanh(-2.0, 2.0), nn.PixelShuffle(2), nn.AvgPool2d(2)
        self.last = nn.Conv2d(2, 4, 1)

    def forward(self, x):
        x = F.relu(self.norm(x))
        x = self.act(self.prelu(self.instance(x)))
        x = self.pool(F.pixel_unshuffle(self.shuffle(x), 2))
        x = F.elu(F.leaky_relu(torch.narrow(x, 1, 1, 2), 0.2), 0.5)
        x = F.group_norm(self.last(x), 2, torch.ones(4), torch.zeros(4))
        return F.relu6(torch.repeat_interleave(x, 2, 2).repeat(1, 1, 1, 2))


class Detector(nn.Module):
    """Several results, a branch that is not quantized, and one layer called twice."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 6, 3, 2), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 6, 3, padding=1), nn.SiLU())
        self.head = nn.Conv2d(6, 4, 1)
        self.score = nn.Conv2d(6, 2, 1)

    def forward(self, x):
        x = self.body(x)
        small = F.max_pool2d(x, 2)
        boxes = torch.cat([torch.flatten(self.head(x), 2), torch.flatten(self.head(small), 2)], 2)
        scores = torch.sigmoid(self.score(small))
        return boxes.permute(0, 2, 1), scores


def image(*shape):
    return lambda made: (torch.randn(*shape, generator=made),)


def spiced(*shape):
    """A few large elements: histograms leave them out."""
    def make(made):
        x = torch.randn(*shape, generator=made)
        return (x * (1 + 4 * (torch.rand(*shape, generator=made) > 0.999)),)
    return make


def indices(*shape):
    return lambda made: (torch.randint(0, 50, shape, generator=made),)


def bags(count, size):
    return lambda made: (torch.randint(0, 50, (count * size,), generator=made), torch.arange(0, count * size + 1, size))


# Name -> (class, inputs, backend config, qconfig mapping).
MODELS = {
    "convnet": (ConvNet, image(4, 3, 16, 16), "native", "x86"),
    "resnet": (ResNet, image(2, 3, 32, 32), "native", "x86"),
    "resnet_x86": (ResNet, spiced(2, 3, 32, 32), "x86", "x86"),
    "bottleneck": (Bottleneck, image(2, 3, 12, 12), "native", "fbgemm"),
    "mobilenet": (MobileNet, image(2, 3, 20, 20), "native", "x86"),
    "mobilenet_qnnpack": (MobileNet, image(2, 3, 20, 20), "native", "qnnpack"),
    "squeeze_excite": (SqueezeExcite, image(2, 3, 10, 10), "native", "x86"),
    "mlp": (Mlp, image(16, 20), "native", "x86"),
    "mlp_onednn": (Mlp, image(16, 20), "onednn", "onednn"),
    "mlp_dynamic": (Mlp, image(16, 20), "native", "dynamic"),
    "net1d": (Net1d, image(3, 4, 30), "native", "x86"),
    "net3d": (Net3d, image(2, 2, 8, 8, 8), "native", "x86"),
    "decoder": (Decoder, image(2, 6, 4, 4), "native", "x86"),
    "inception": (Inception, image(2, 3, 12, 12), "native", "x86"),
    "unet": (UNet, image(2, 3, 16, 16), "native", "x86"),
    "shapes": (Shapes, image(3, 3, 14, 14), "native", "minmax"),
    "mixer": (Mixer, image(2, 6, 16), "native", "x86"),
    "embedded": (Embedded, indices(4, 7), "native", "embedding"),
    "functional": (Functional, image(2, 3, 11, 11), "native", "partly"),
    "embedded_4bit": (Embedded, indices(4, 7), "native", "embedding_4bit"),
    "bag": (Bag, bags(5, 3), "native", "embedding"),
    "odds": (Odds, image(2, 4, 8, 8), "native", "x86"),
    "detector": (Detector, image(2, 3, 18, 18), "fbgemm", "fbgemm"),
    "sums": (Sums, image(2, 4, 9, 9), "onednn", "onednn"),
}


# Exported with any number of images.
DYNAMIC = ("resnet_x86", "shapes", "detector")


def dynamic_shapes(name):
    return ({0: torch.export.Dim("batch", min=1, max=64)},) if name in DYNAMIC else None


def random_statistics(model, made):
    """Batch norms as after training: no two channels alike."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.copy_(torch.randn(module.running_mean.shape, generator=made) * 0.2)
            module.running_var.copy_(torch.rand(module.running_var.shape, generator=made) + 0.5)
            module.weight.data.copy_(torch.rand(module.weight.shape, generator=made) + 0.5)
            module.bias.data.copy_(torch.randn(module.bias.shape, generator=made) * 0.2)


def make(name, samples=4):
    """The model in inference, its calibration data, and the inputs of the test."""
    kind, inputs, backend, mapping = MODELS[name]
    torch.manual_seed(sum(map(ord, name)))
    made = torch.Generator().manual_seed(len(name))
    model = kind().eval()
    random_statistics(model, made)
    calibration = [inputs(made) for _ in range(samples)]
    return model, calibration, inputs(made), backend, mapping
