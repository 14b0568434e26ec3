"""What the suites share: small models with fixed weights, exported graphs, and the size of this process."""

import pathlib

import pytest
import torch

import halftone

torch.set_num_threads(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes an hour; `pytest -m slow`")


def mlp(inputs: int = 64, outputs: int = 10) -> torch.nn.Module:
    torch.manual_seed(7)
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, 96), torch.nn.GELU(), torch.nn.LayerNorm(96), torch.nn.Linear(96, 96), torch.nn.ReLU(), torch.nn.Linear(96, outputs)
    ).eval()


def relative_error(got: torch.Tensor, expected: torch.Tensor) -> float:
    return float((got.detach() - expected.detach()).norm() / expected.detach().norm())


def resident_bytes() -> int:
    text = pathlib.Path("/proc/self/statm").read_text(encoding="ascii")
    return int(text.split()[1]) * 4096


@pytest.fixture
def model() -> torch.nn.Module:
    return mlp()


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(8, 64, generator=torch.Generator().manual_seed(3))


@pytest.fixture
def graph(model: torch.nn.Module, x: torch.Tensor) -> halftone.GraphModule:
    return halftone.export(model, [x, x[:3]])
