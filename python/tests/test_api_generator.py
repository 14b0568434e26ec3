"""Text from a small GGUF file; PyTorch's operators on the same weights are the oracle."""

import pathlib
import sys
import threading

import pytest

import halftone

pytest.importorskip("gguf", reason="scripts/setup test installs it")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/decoder"))
import tiny_llama  # noqa: E402

PROMPT = "The house stood"


@pytest.fixture(scope="module")
def weights():
    return tiny_llama.make_weights(tied=True)


@pytest.fixture(scope="module")
def generator(weights, tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    tiny_llama.write(path, weights)
    return halftone.Generator(path, "noquant")


def test_greedy_text_is_pytorchs(generator, weights):
    expected, logprobs = tiny_llama.greedy(weights, PROMPT.encode(), 20)
    pieces = []
    answer = generator.generate(PROMPT, max_tokens=20, temperature=0, logprobs=True, on_text=pieces.append)
    assert answer.tokens == expected and str(answer) == answer.text == "".join(pieces)
    assert max(abs(a - b) for a, b in zip(answer.logprobs, logprobs, strict=True)) < 1e-4
    assert answer.prompt_tokens == len(PROMPT)


def test_streaming(generator):
    whole = generator.generate(PROMPT, max_tokens=20, temperature=0).text
    assert "".join(generator.stream(PROMPT, max_tokens=20, temperature=0)) == whole


def test_leaving_the_loop_ends_the_answer(generator):
    before = threading.active_count()
    for _ in generator.stream(PROMPT, max_tokens=60, temperature=0):
        break
    assert threading.active_count() == before


def test_false_ends_the_answer(generator):
    answer = generator.generate(PROMPT, max_tokens=60, temperature=0, on_text=lambda piece: False)
    assert answer.stop_reason == "cancelled" and len(answer.tokens) < 60


def test_an_exception_in_on_text_comes_through(generator):
    def fail(piece):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        generator.generate(PROMPT, temperature=0, on_text=fail)
    with pytest.raises(halftone.Error):
        list(generator.stream("", temperature=0))


def test_seeds_schemes_and_tokens(generator, tmp_path, weights):
    first, again = (generator.generate(PROMPT, max_tokens=10, seed=3).text for _ in range(2))
    assert first == again
    assert generator.decode(generator.encode(PROMPT)) == PROMPT
    assert len(generator.logits(generator.encode("ab"))) == 2
    assert generator.info["layers"] == tiny_llama.LAYERS and "tiny" in repr(generator)
    tiny_llama.write(tmp_path / "tiny.gguf", weights)
    assert halftone.Generator(tmp_path / "tiny.gguf", "int8dq").info["scheme"] == "int8dq"
