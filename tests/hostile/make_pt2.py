"""Writes the .pt2 files that hostile_files starts from: make_pt2.py FOLDER."""
import pathlib
import sys

import torch
from torch import nn


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        return self.fc(nn.functional.adaptive_avg_pool2d(torch.relu(self.norm(self.conv(x))), 1).flatten(1))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(12, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, ids):
        x = self.layer(self.words(ids))
        return {"pooled": x.mean(1), "parts": x.split(4, -1)}


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 6, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0].cumsum(1)


class Choice(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda a: a * 2, lambda a: a - 1, (x,))


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.total.add_(x)
        return torch.cat([self.total, x.expand(2, 3).reshape(-1)])


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    batch = torch.export.Dim("batch", min=1, max=8)
    models = {
        "images": (Images(), (torch.randn(2, 3, 6, 6),), ({0: batch},)),
        "words": (Words(), (torch.randint(12, (2, 5)),), None),
        "recurrent": (Recurrent(), (torch.randn(1, 3, 4),), None),
        "choice": (Choice(), (torch.randn(3),), None),
        "counter": (Counter(), (torch.ones(3),), None),
    }
    for name, (module, inputs, dynamic) in models.items():
        with torch.no_grad():
            program = torch.export.export(module.eval(), inputs, dynamic_shapes=dynamic)
        torch.export.save(program, folder / f"{name}.pt2")


if __name__ == "__main__":
    main()
