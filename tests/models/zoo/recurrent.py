"""Recurrent layers. Eager PyTorch hands some of them to oneDNN; the exported program calls the same entry point."""

import torch
from torch import nn

from .case import Case, case


class LstmTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(40, 12)
        self.lstm = nn.LSTM(12, 16, num_layers=2)
        self.head = nn.Linear(16, 5)

    def forward(self, tokens):
        y, (hidden, cell) = self.lstm(self.embedding(tokens))
        return self.head(y), hidden, cell


@case("strict", "decomposed")
def lstm() -> Case:
    return Case(LstmTagger(), (torch.randint(40, (7, 3)),))


class LstmBatchFirst(nn.Module):
    """Both directions, with a state given by the caller."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(10, 8, batch_first=True, bidirectional=True)

    def forward(self, x, state):
        return self.lstm(x, state)


@case("decomposed")
def lstm_batch_first() -> Case:
    return Case(LstmBatchFirst(), (torch.randn(3, 6, 10), (torch.randn(2, 3, 8), torch.randn(2, 3, 8))))


class GruForecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 12, num_layers=2, batch_first=True, dropout=0.2)
        self.head = nn.Linear(12, 4)

    def forward(self, x):
        y, _ = self.gru(x)
        return self.head(y[:, -1])


@case("decomposed")
def gru() -> Case:
    return Case(GruForecaster(), (torch.randn(3, 5, 4),))


class CellLoop(nn.Module):
    """A loop in Python over cells: it is unrolled by the export."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTMCell(5, 6)
        self.gru = nn.GRUCell(6, 6)
        self.rnn = nn.RNN(6, 4, nonlinearity="relu")

    def forward(self, x):
        hidden = cell = state = x.new_zeros(x.shape[1], 6)
        states = []
        for step in x.unbind(0):
            hidden, cell = self.lstm(step, (hidden, cell))
            state = self.gru(hidden, state)
            states.append(state)
        return self.rnn(torch.stack(states))[0]


@case("decomposed")
def recurrent_cells() -> Case:
    return Case(CellLoop(), (torch.randn(4, 3, 5),))
