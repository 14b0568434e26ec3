"""PyTorch's samples of its operators, through the backend. ``opdb.py`` is the full run."""

from __future__ import annotations

import pytest

pytest.importorskip("expecttest", reason="torch.testing._internal needs it")

import opdb


def failures(outcomes: list[opdb.Outcome]) -> list[str]:
    return [f"{each.name} {each.dtype}: {each.kind}: {each.reason}" for each in outcomes if not each.good]


def test_a_tenth_of_all_operators() -> None:
    outcomes = opdb.run(opdb.operators()[3::10], limit=1)
    assert failures(outcomes) == []
    kinds = [each.kind for each in outcomes if each.kind != "skipped"]
    # Most must be ours, or the comparison above compares eager with itself.
    assert kinds.count("equal") >= 0.8 * len(kinds), kinds


@pytest.mark.slow
def test_all_operators() -> None:
    assert failures(opdb.run(opdb.operators(), limit=1_000_000)) == []
