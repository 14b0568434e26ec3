"""PyTorch's own samples (``op_db``) through the backend: every operator on the CPU in float32, and int64 where it takes it.

    python python/tests/opdb.py [--first N] [--every N] [--samples N] [--json FILE] [NAME …]

The full run takes an hour; ``test_dynamo_opdb.py`` runs a fixed tenth.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from halftone.dynamo import collect

DTYPES = (torch.float32, torch.int64)

#: Operators whose results are not to be compared, and why. Everything else must be equal to eager.
NOT_COMPARED: dict[str, str] = {
    name: "the content of the result is undefined"
    for name in ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
}


@dataclasses.dataclass
class Outcome:
    """One operator with one dtype."""

    name: str
    dtype: str
    #: ``"equal"``, ``"eager"``, ``"no graph"``, ``"skipped"``, ``"different"`` or ``"error"``.
    kind: str
    reason: str = ""
    samples: int = 0

    @property
    def good(self) -> bool:
        """Not a defect of ours: equal, or with a reason."""
        return self.kind in ("equal", "eager", "no graph", "skipped")


def operators() -> list[Any]:
    """All of op_db, in a fixed order."""
    from torch.testing._internal.common_methods_invocations import op_db

    return sorted(op_db, key=lambda op: (op.name, op.variant_test_name))


def full_name(op: Any) -> str:
    """The name, and the variant's."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def _compare(result: Any, expected: Any, content: bool) -> None:
    flat, spec = torch.utils._pytree.tree_flatten(result)
    wanted, wanted_spec = torch.utils._pytree.tree_flatten(expected)
    assert spec == wanted_spec, f"{spec} is not {wanted_spec}"
    for one, other in zip(flat, wanted, strict=True):
        if isinstance(other, torch.Tensor) and not content:
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
        elif isinstance(other, torch.Tensor):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4, equal_nan=True)
        else:
            torch.testing.assert_close(one, other, equal_nan=True)


def _samples(op: Any, dtype: torch.dtype, limit: int) -> Iterator[Any]:
    torch.manual_seed(0)
    for index, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
        if index >= limit:
            return
        yield sample


def _call_both(function: Any, sample: Any, content: bool) -> None:
    def run(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    def copied() -> Any:
        return torch.utils._pytree.tree_map_only(
            torch.Tensor, lambda t: t.clone() if t.layout == torch.strided else t, (sample.input, sample.args, sample.kwargs)
        )

    value, args, kwargs = copied()
    torch.manual_seed(1)
    expected = run(value, *args, **kwargs)
    value, args, kwargs = copied()
    torch.manual_seed(1)
    result = torch.compile(run, backend="halftone")(value, *args, **kwargs)
    _compare(result, expected, content)


def run_operator(op: Any, dtype: torch.dtype, limit: int) -> Outcome:
    """All samples up to the limit; the first that is not equal decides."""
    outcome = Outcome(full_name(op), str(dtype).removeprefix("torch."), "equal")
    if dtype not in op.supported_dtypes("cpu"):
        return dataclasses.replace(outcome, kind="skipped", reason="does not take this type")
    graphs_seen = 0
    for sample in _samples(op, dtype, limit):
        torch._dynamo.reset()
        with collect() as graphs, torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                _call_both(op.op, sample, op.name not in NOT_COMPARED)
            except AssertionError as error:
                return dataclasses.replace(outcome, kind="different", reason=_line(error), samples=outcome.samples + 1)
            except Exception as error:  # noqa: BLE001  every error is an outcome here
                return dataclasses.replace(
                    outcome, kind="error", reason=f"{type(error).__name__}: {_line(error)}", samples=outcome.samples + 1
                )
        outcome.samples += 1
        graphs_seen += len(graphs)
        reasons = [graph.eager_reason for graph in graphs if graph.eager_reason]
        if reasons:
            outcome.kind, outcome.reason = "eager", reasons[0]
    if outcome.kind == "equal" and outcome.samples and not graphs_seen:
        outcome.kind, outcome.reason = "no graph", "dynamo gave no graph to the backend"
    return outcome


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " / ".join(lines[:3])[:300]


class _Alarm:
    """An operator that hangs is an error, not the end of the run."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        def ring(*_: Any) -> None:
            raise TimeoutError(f"more than {self.seconds} s")

        signal.signal(signal.SIGALRM, ring)
        signal.alarm(self.seconds)

    def __exit__(self, *_: object) -> None:
        signal.alarm(0)


def run(chosen: list[Any], limit: int, *, verbose: bool = False) -> list[Outcome]:
    """Every operator in every type."""
    outcomes = []
    for op in chosen:
        for dtype in DTYPES:
            try:
                with _Alarm(300):
                    outcome = run_operator(op, dtype, limit)
            except Exception as error:  # noqa: BLE001  samples that cannot be made here
                outcome = Outcome(full_name(op), str(dtype), "skipped", f"no samples: {_line(error)}")
            outcomes.append(outcome)
            if verbose and outcome.kind != "skipped":
                print(f"{outcome.name} {outcome.dtype}: {outcome.kind} {outcome.reason}", flush=True)
    return outcomes


def main() -> int:
    """The counts, and each operator that is not equal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--first", type=int, default=0, help="index of the first operator")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--samples", type=int, default=1_000_000, help="of an operator and type, at most")
    parser.add_argument("--json")
    options = parser.parse_args()
    chosen = operators()[options.first :: options.every]
    if options.names:
        chosen = [op for op in operators() if op.name in options.names]
    outcomes = run(chosen, options.samples, verbose=True)
    print(dict(collections.Counter(outcome.kind for outcome in outcomes)))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([dataclasses.asdict(outcome) for outcome in outcomes], file, indent=1)
    return 0 if all(outcome.good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
