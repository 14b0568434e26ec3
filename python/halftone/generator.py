"""Text from language models in GGUF files."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from halftone import _C
from halftone._model import PathLike

GeneratedText = _C.GeneratedText


class Generator:
    """A decoder that is ready to continue texts. Safe from many threads: each call has a KV cache of its own.

    `scheme`: a name of `schemes()` or "noquant". `context`: tokens that prompt and answer may have together; 0: as many
    as the model was trained for, at most 2048.

        model = halftone.Generator("model.gguf")
        for piece in model.stream("The house stood at the end of", max_tokens=64):
            print(piece, end="", flush=True)
    """

    def __init__(
        self,
        path: PathLike,
        scheme: str = "int8dq",
        *,
        context: int = 0,
        threads: int = 0,
        progress: Callable[[int, int, str], Any] | None = None,
    ) -> None:
        self._generator = _C.Generator.open(os.fspath(path), scheme, context, threads, progress)

    def generate(
        self,
        prompt: str,
        *,
        max_tokens: int = 128,
        temperature: float = 0.8,
        top_k: int = 40,
        top_p: float = 0.95,
        min_p: float = 0.05,
        repeat_penalty: float = 1.0,
        repeat_last: int = 64,
        seed: int = 0,
        stop: Sequence[str] = (),
        parse_special: bool = True,
        logprobs: bool = False,
        on_text: Callable[[str], Any] | None = None,
    ) -> GeneratedText:
        """Continues the prompt. `on_text(piece)` gets the text as it comes; False ends the answer."""
        options = {name: value for name, value in locals().items() if name not in ("self", "prompt")}
        return self._generator.generate(prompt, options | {"stop": list(stop)})

    def stream(self, prompt: str, **options: Any) -> Iterator[str]:
        """The pieces of the answer as they come; options as for `generate`. Leaving the loop ends the answer."""
        pieces: queue.Queue[Any] = queue.Queue(maxsize=16)
        left = threading.Event()

        def on_text(piece: str) -> bool:
            pieces.put(piece)
            return not left.is_set()

        def work() -> None:
            try:
                self.generate(prompt, on_text=on_text, **options)
                pieces.put(None)
            except BaseException as error:
                pieces.put(error)

        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        try:
            while (piece := pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            left.set()
            while worker.is_alive():
                with contextlib.suppress(queue.Empty):
                    pieces.get_nowait()  # room for what it may be waiting to put
                worker.join(0.005)

    def encode(self, text: str) -> list[int]:
        """The token ids of a text."""
        return self._generator.encode(text)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of token ids."""
        return self._generator.decode(list(tokens))

    def logits(self, tokens: Sequence[int]) -> list[list[float]]:
        """After each of these tokens, a number for each word of the vocabulary."""
        return self._generator.logits(list(tokens))

    @property
    def info(self) -> dict[str, Any]:
        """What the file holds, in figures."""
        return self._generator.info

    @property
    def chat_template(self) -> str:
        """The template that the file has for chats, as it is; "" if there is none."""
        return self._generator.chat_template

    def __repr__(self) -> str:
        info = self.info
        return f"Generator({info['name']!r}, {info['architecture']}, {info['parameters']:,} parameters, {info['scheme']})"
