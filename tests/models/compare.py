"""Compares two sets of named tensors: bit for bit, or within a tolerance."""

from __future__ import annotations

import torch


def difference(name: str, got: torch.Tensor, want: torch.Tensor, tolerance: float) -> str | None:
    """Why `got` is not `want`, or None. Tolerance 0 asks for equal bits, except that any NaN equals any NaN."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{name} is {got.dtype} {list(got.shape)}, expected {want.dtype} {list(want.shape)}"
    inexact = want.is_floating_point() or want.is_complex()
    bound = tolerance if inexact else 0.0
    if torch.allclose(got, want, rtol=bound, atol=bound, equal_nan=True) and (bound > 0 or same_signs(got, want)):
        return None
    wide = torch.complex128 if want.is_complex() else torch.float64
    gaps = (got.to(wide) - want.to(wide)).abs().nan_to_num(nan=torch.inf)
    both_nan = (got != got) & (want != want)
    return f"{name} differs by up to {gaps.masked_fill(both_nan, 0).max().item():g} (allowed: {bound:g})"


def same_signs(got: torch.Tensor, want: torch.Tensor) -> bool:
    """Tells 0 from -0, which compare as equal."""
    if not want.is_floating_point():
        return True
    return bool(((got.signbit() == want.signbit()) | want.isnan()).all())


def differences(
    got: dict[str, torch.Tensor], want: dict[str, torch.Tensor], tolerance: float
) -> list[str]:
    """All that differs, missing and unexpected names first."""
    problems = [f"{name} is missing" for name in sorted(want.keys() - got.keys())]
    problems += [f"{name} is not expected" for name in sorted(got.keys() - want.keys())]
    for name in sorted(want.keys() & got.keys()):
        problem = difference(name, got[name], want[name], tolerance)
        if problem:
            problems.append(problem)
    return problems
