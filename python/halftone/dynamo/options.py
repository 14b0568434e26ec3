"""Options of the backend: ``torch.compile(model, backend="halftone", options={...})``."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from typing import Any

#: What happens to a graph that cannot be converted.
FALLBACKS = ("eager", "error")


@dataclasses.dataclass(frozen=True)
class BackendOptions:
    """The options of one ``torch.compile`` call, checked.

    >>> BackendOptions.from_dict({"scheme": "int8dq", "threads": 1}).threads
    1
    """

    #: Quantizes the weights of each graph before it is compiled: ``"int8dq"``, ``"int4wo:64"``, a config.
    scheme: Any = None
    #: Threads of one run at most; 0: as many as ``torch.get_num_threads()``.
    threads: int = 0
    #: Sizes that a graph keeps ready.
    max_plans: int = 32
    #: Passes of the compiler that are left out.
    disabled_passes: tuple[str, ...] = ()
    #: ``"halftone"``, ``"mkldnn"`` or ``"fastest"``.
    convolutions: str = "halftone"
    #: Whether weights are compiled in where no gradients are needed.
    freeze: bool = True
    #: How often a graph is compiled for other weights before weights are read at each call instead.
    max_variants: int = 16
    #: ``"eager"``: a graph that cannot be converted runs uncompiled, with a warning; ``"error"``: it is an error.
    fallback: str = "eager"

    @classmethod
    def from_dict(cls, options: Mapping[str, Any] | None) -> BackendOptions:
        """Raises ``ValueError`` that names an unknown option or a wrong value."""
        given = dict(options or {})
        known = [field.name for field in dataclasses.fields(cls)]
        for name in given:
            if name not in known:
                nearest = difflib.get_close_matches(name, known, n=1)
                hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
                raise ValueError(f"backend halftone: unknown option {name!r}{hint} (known: {', '.join(known)})")
        if isinstance(given.get("disabled_passes"), Sequence) and not isinstance(given["disabled_passes"], str):
            given["disabled_passes"] = tuple(given["disabled_passes"])
        result = cls(**given)
        result._check()
        return result

    def _check(self) -> None:
        for name, least in (("threads", 0), ("max_plans", 1), ("max_variants", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"backend halftone: option {name} must be an integer from {least} on, not {value!r}")
        if not isinstance(self.disabled_passes, tuple) or not all(isinstance(p, str) for p in self.disabled_passes):
            raise ValueError("backend halftone: option disabled_passes must be a list of names")
        if self.convolutions not in ("halftone", "mkldnn", "fastest"):
            raise ValueError(
                'backend halftone: option convolutions must be "halftone", "mkldnn" or "fastest", '
                f"not {self.convolutions!r}"
            )
        if self.fallback not in FALLBACKS:
            raise ValueError(f'backend halftone: option fallback must be "eager" or "error", not {self.fallback!r}')
        if not isinstance(self.freeze, bool):
            raise ValueError(f"backend halftone: option freeze must be True or False, not {self.freeze!r}")  # noqa: TRY004
        if self.scheme is not None and not self.freeze:
            raise ValueError("backend halftone: option scheme needs weights that are compiled in: leave freeze at True")

    def compile_arguments(self) -> dict[str, Any]:
        """What ``_C.compile_variant`` takes."""
        return {
            "disabled_passes": list(self.disabled_passes),
            "max_plans": self.max_plans,
            "threads": self.threads,
            "convolutions": self.convolutions,
        }
