"""Small models of every kind, as (name, module, example inputs)."""
import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = x + F.silu(layer(x)) * 0.5
        return x


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = (q @ k.transpose(-2, -1) / (width // self.heads)**0.5).softmax(-1)
        return self.out((scores @ v).transpose(1, 2).reshape(batch, length, width))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.norm_2 = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
        x = F.relu(self.norm_2(self.second(x)) + x)
        return self.head(x.mean((2, 3)))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 16)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 20)

    def forward(self, ids):
        return F.log_softmax(self.head(self.norm(self.table(ids))), -1)


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 7))

    def forward(self, x, target):
        logits = self.body(x)
        return F.cross_entropy(logits, target), logits.softmax(-1)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 10, num_layers=2, batch_first=True)

    def forward(self, x):
        out, (h, c) = self.lstm(x)
        return out, h + c


class NormBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.up = nn.Linear(16, 64)
        self.down = nn.Linear(64, 16)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x)), approximate="tanh"))


class Pointwise(nn.Module):
    """Chains of cheap operators, views, broadcasts and reductions."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(16))

    def forward(self, x, y):
        a = torch.sigmoid(x * self.scale) + torch.cos(y).unsqueeze(1)
        b = (a * a).sum(-1, keepdim=True).rsqrt() * a
        c, d = b.transpose(1, 2).split([6, 10], 1)
        return torch.where(c.mean(1, keepdim=True) > 0.1, c, c.exp()), d.sin().amax(1)


def sequential(*layers):
    return nn.Sequential(*layers)


def models():
    torch.manual_seed(0)
    yield "mlp", sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32), nn.Sigmoid(),
                            nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 3)), [torch.randn(16, 10, requires_grad=True)]
    yield "layer_norm_block", NormBlock(), [torch.randn(4, 6, 16, requires_grad=True)]
    yield "transformer_layer", nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), [torch.randn(3, 7, 16)]
    yield "transformer_norm_first", nn.TransformerEncoderLayer(
        16, 2, 32, dropout=0.0, activation="gelu", norm_first=True), [torch.randn(7, 3, 16, requires_grad=True)]
    yield "conv_batch_norm", ConvNet(), [torch.randn(4, 3, 8, 8)]
    yield "lstm", Recurrent(), [torch.randn(3, 5, 6)]
    yield "embedding", Words(), [torch.tensor([[1, 1, 4, 19], [4, 0, 1, 7]])]
    yield "cross_entropy", Loss(), [torch.randn(9, 12), torch.arange(9) % 7]
    yield "gelu_mlp", sequential(nn.Linear(10, 40), nn.GELU(), nn.Linear(40, 40), nn.GELU(), nn.Linear(40, 4)), [torch.randn(8, 10)]
    yield "residual", Residual(12, 4), [torch.randn(6, 12)]
    yield "attention", Attention(16, 4), [torch.randn(2, 9, 16, requires_grad=True)]
    yield "pointwise", Pointwise(), [torch.randn(4, 5, 16), torch.randn(4, 16)]
    yield "activations", sequential(nn.Linear(10, 16), nn.Hardswish(), nn.Linear(16, 16), nn.ELU(), nn.Linear(16, 16), nn.Softplus(),
                                    nn.Linear(16, 16), nn.LeakyReLU(), nn.Hardtanh(), nn.Linear(16, 2)), [torch.randn(8, 10)]
    yield "group_norm", sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8), nn.Mish(), nn.Conv2d(8, 4, 3), nn.AdaptiveAvgPool2d(1),
                                   nn.Flatten()), [torch.randn(2, 3, 9, 9)]
    yield "dropout", sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 32), nn.Dropout(0.5), nn.GELU(),
                                nn.Linear(32, 2)), [torch.randn(8, 10)]
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
    yield "deep_transformer", nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), [torch.randn(2, 6, 16)]
