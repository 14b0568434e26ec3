"""Gradient mode and autocast switched inside the forward: the export wraps such regions in operators of their own."""

import torch
from torch import nn

from .case import Case, case


class NoGradInside(nn.Module):
    """As Hugging Face decoders do for their rotary tables."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.register_buffer("frequencies", torch.rand(3))

    def forward(self, x):
        with torch.no_grad():
            angles = torch.arange(x.shape[0])[:, None] * self.frequencies
            table = torch.cat([angles.cos(), angles.sin()], dim=-1)
        y = self.linear(x) * table
        with torch.no_grad():
            y = y - y.mean()
            with torch.enable_grad():
                y = y * 2
        return y, table


@case("strict", "decomposed")
def no_grad_inside() -> Case:
    return Case(NoGradInside(), (torch.randn(4, 6),))


class AutocastInside(nn.Module):
    """Inside the region the layers run in bfloat16, where it is switched off again in float32."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.first(x)
            with torch.autocast("cpu", enabled=False):
                z = self.second(y.float()).relu()
            w = self.third(z) @ z
        return y, z, w, x @ z


# Not strict: torch 2.13 then asserts in the graph that `y` is float32, and cannot run its own export.
@case("decomposed")
def autocast_inside() -> Case:
    return Case(AutocastInside(), (torch.randn(8, 8),))
