"""Small feed-forward models, and the corner cases of what a model holds and returns."""

import torch
from torch import nn

from .case import Case, case


@case("strict", "decomposed")
def mlp() -> Case:
    module = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 4))
    return Case(module, (torch.randn(8, 16),))


class Autoencoder(nn.Module):
    def __init__(self, width: int, code: int):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(width, 24), nn.SiLU(), nn.Linear(24, code), nn.Tanh())
        self.decoder = nn.Sequential(nn.Linear(code, 24), nn.SiLU(), nn.Linear(24, width), nn.Sigmoid())

    def forward(self, x):
        code = self.encoder(x)
        return self.decoder(code), code


@case("decomposed")
def autoencoder() -> Case:
    return Case(Autoencoder(48, 6), (torch.rand(5, 48),))


class TextClassifier(nn.Module):
    """An embedding bag with offsets (bags of several lengths, one of them empty) and one with weights per sample."""

    def __init__(self):
        super().__init__()
        self.mean = nn.EmbeddingBag(50, 12, mode="mean")
        self.weighted = nn.EmbeddingBag(50, 12, mode="sum")
        self.head = nn.Linear(24, 3)

    def forward(self, tokens, offsets, weights):
        bags = torch.cat([self.mean(tokens, offsets), self.weighted(tokens, offsets, weights)], dim=1)
        return self.head(bags)


@case("decomposed")
def embedding_bag() -> Case:
    return Case(TextClassifier(), (torch.randint(50, (10,)), torch.tensor([0, 3, 3, 7]), torch.rand(10)))


class TiedLanguageModel(nn.Module):
    """Two names for one parameter: the head's weight is the embedding's."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 16)
        self.hidden = nn.Linear(16, 16)
        self.head = nn.Linear(16, 30, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(torch.tanh(self.hidden(self.embedding(tokens))))


@case("strict", "decomposed")
def tied_parameters() -> Case:
    return Case(TiedLanguageModel(), (torch.randint(30, (2, 7)),))


class TensorConstants(nn.Module):
    """Plain tensor attributes, literal tensors in forward and lists turned into tensors: constants, not parameters."""

    def __init__(self):
        super().__init__()
        self.scale = torch.linspace(-1, 1, 6)
        self.shared = self.scale[2:5]

    def forward(self, x):
        y = x * self.scale + torch.tensor([3.0, 1.0, 4.0, 1.0, 5.0, 9.0])
        y[:, 2:5] += self.shared
        return y * torch.tensor(0.5), torch.tensor([[1, 2], [3, 4]])


@case("strict", "decomposed")
def tensor_constants() -> Case:
    return Case(TensorConstants(), (torch.randn(4, 6),))


class NoParameters(nn.Module):
    def forward(self, x, y):
        return torch.softmax(x @ y.mT, dim=-1).cumsum(-1)


@case("strict")
def no_parameters() -> Case:
    return Case(NoParameters(), (torch.randn(3, 5), torch.randn(4, 5)))


class OutputIsInput(nn.Module):
    def forward(self, x, y):
        return x, y + 1, x


@case("strict", "decomposed")
def output_is_input() -> Case:
    return Case(OutputIsInput(), (torch.randn(3), torch.randn(3)))


class OutputIsParameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(3, 2))
        self.register_buffer("steps", torch.arange(4))
        self.pair = torch.tensor([1.5, 2.5])

    def forward(self, x):
        return self.table, self.steps, self.pair, x.sum()


@case("decomposed")
def output_is_parameter() -> Case:
    return Case(OutputIsParameter(), (torch.randn(3),))


class DuplicatedOutputs(nn.Module):
    def forward(self, x):
        y = x.relu()
        return y, y, y.t(), y


@case("strict", "decomposed")
def duplicated_outputs() -> Case:
    return Case(DuplicatedOutputs(), (torch.randn(3, 4),))


class UnusedInputs(nn.Module):
    """Inputs and parameters that the graph never reads."""

    def __init__(self):
        super().__init__()
        self.unused = nn.Linear(3, 3)

    def forward(self, x, never, y):
        return x - y


@case()
def unused_inputs() -> Case:
    return Case(UnusedInputs(), (torch.randn(2), torch.randn(5), torch.randn(2)))
