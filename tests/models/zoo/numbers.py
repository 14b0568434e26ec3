"""Number types other than float32."""

import torch
from torch import nn
from torch.nn import functional as F

from .case import Case, case


class MixedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        y = F.silu(self.conv(x)).mean((2, 3))
        return self.head(self.norm(y)), y.float().softmax(-1)


@case("strict", "decomposed")
def bfloat16() -> Case:
    # 8 bits of mantissa: where the decomposition keeps intermediate values in float32, a last bit is 2^-8.
    return Case(MixedNet().bfloat16(), (torch.randn(2, 3, 8, 8, dtype=torch.bfloat16),), decomposed_tolerance=1e-2)


@case("decomposed")
def float16() -> Case:
    return Case(MixedNet().half(), (torch.randn(2, 3, 8, 8).half(),), decomposed_tolerance=2e-3)


@case()
def float64() -> Case:
    return Case(MixedNet().double(), (torch.randn(2, 3, 8, 8, dtype=torch.float64),))


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(9, dtype=torch.complex64))

    def forward(self, x, z):
        spectrum = torch.fft.rfft(x) * self.filter
        return torch.fft.irfft(spectrum, n=16), (z * (2 + 1j)).conj() + 1j, spectrum.abs(), torch.view_as_real(z)


@case("strict")
def complex_numbers() -> Case:
    return Case(Complex(), (torch.randn(3, 16), torch.randn(4, dtype=torch.complex64)))


class Integers(nn.Module):
    def forward(self, a, b, mask, small):
        bits = (a & 0xFF) ^ (b << 2) | (a >> 1)
        divided = torch.div(a, b, rounding_mode="floor"), a % b, a // 3
        counts = torch.bincount(small.flatten().long(), minlength=8)
        return bits, divided, ~mask, mask.logical_or(a > 0), small + 200, counts, a.to(torch.int32).sum(), small.short() - 1


@case("strict", "decomposed")
def integers() -> Case:
    a, b = torch.randint(-1000, 1000, (6,)), torch.randint(1, 9, (6,))
    return Case(Integers(), (a, b, torch.rand(6) > 0.5, torch.randint(0, 8, (5,), dtype=torch.uint8)))


class SpecialFloats(nn.Module):
    """Infinities, NaN, the largest and the smallest numbers as arguments of operators."""

    def forward(self, x):
        masked = x.masked_fill(x > 0, float("-inf"))
        return (masked.clamp(min=-3.4e38), torch.full((2,), float("nan")), torch.where(x > 0, float("inf"), x),
                torch.nan_to_num(masked, neginf=-1e-45), x * 1e-40, x + 16777217, torch.full((1,), 2**53 + 1))


@case("strict", "decomposed")
def special_floats() -> Case:
    return Case(SpecialFloats(), (torch.randn(5),))


class EmptyTensors(nn.Module):
    def forward(self, x, nothing):
        return torch.cat([x, nothing]), nothing.sum(), x[:0], nothing @ x.T

@case()
def empty_tensors() -> Case:
    return Case(EmptyTensors(), (torch.randn(3, 4), torch.randn(0, 4)))
