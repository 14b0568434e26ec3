"""Architectures of transformers and timm, with random weights and tiny sizes, through the backend.

    make test-python-zoo            an environment of its own, then this
    python zoo.py [--json FILE] [--training] [NAME …]

A row: largest relative error against eager, graphs and graph breaks (and those of ``backend="eager"``), nodes, share of the
steps that run in Halftone's kernels, graphs that run as eager. Exit code 1 if a result is wrong, a graph of ours is missing or
a model that eager runs fails.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

from halftone import dynamo

SECONDS = 600
BOUND = 1e-3

#: transformers: config class → what differs from `SMALL`.
TRANSFORMERS: dict[str, dict[str, Any]] = {
    "Bert": {},
    "Roberta": {"pad_token_id": 1},
    "Albert": {"embedding_size": 16},
    "Electra": {"embedding_size": 16},
    "Deberta": {},
    "DebertaV2": {},
    "DistilBert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "MPNet": {},
    "XLMRoberta": {"pad_token_id": 1},
    "RoFormer": {"embedding_size": 32},
    "MobileBert": {"embedding_size": 32, "intra_bottleneck_size": 32, "true_hidden_size": 32},
    "ConvBert": {"embedding_size": 32},
    "FNet": {},
    "Nystromformer": {},
    "ModernBert": {"global_attn_every_n_layers": 1, "pad_token_id": 0, "eos_token_id": 2, "bos_token_id": 1,
                   "cls_token_id": 1, "sep_token_id": 2},
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "GPTNeo": {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]},
    "GPTNeoX": {},
    "GPTJ": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "rotary_dim": 8},
    "OPT": {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "Bloom": {"n_layer": 2, "n_head": 4},
    "Llama": {},
    "Mistral": {},
    "Mixtral": {"num_local_experts": 2},
    "Qwen2": {},
    "Qwen3": {"head_dim": 8},
    "Gemma": {"head_dim": 8},
    "Gemma2": {"head_dim": 8},
    "Gemma3Text": {"head_dim": 8},
    "Phi": {},
    "Phi3": {"pad_token_id": 0},
    "StableLm": {},
    "Starcoder2": {},
    "Olmo": {},
    "Olmo2": {},
    "Cohere": {},
    "Granite": {},
    "Falcon": {},
    "Mamba": {"state_size": 4},
    "Rwkv": {"attention_hidden_size": 32},
    "T5": {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
    "Bart": {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
             "encoder_attention_heads": 4, "decoder_attention_heads": 4},
}  # fmt: skip
#: Models of pictures in transformers.
VISION: dict[str, dict[str, Any]] = {
    "ViT": {}, "DeiT": {}, "Dinov2": {}, "Beit": {}, "ViTMAE": {"decoder_hidden_size": 32, "decoder_num_hidden_layers": 1,
    "decoder_num_attention_heads": 4, "decoder_intermediate_size": 64}, "Siglip2Vision": {}, "CLIPVision": {},
    "ConvNext": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]},
    "ResNet": {"embedding_size": 8, "hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]},
    "Segformer": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4]},
}  # fmt: skip
TIMM = (
    "resnet18", "resnext50_32x4d", "wide_resnet50_2", "densenet121", "vgg11", "mobilenetv2_100", "mobilenetv3_small_100",
    "efficientnet_b0", "mnasnet_100", "regnetx_002", "regnety_002", "convnext_atto", "convnextv2_atto", "ghostnet_100",
    "vit_tiny_patch16_224", "deit_tiny_patch16_224", "mixer_s32_224", "swin_tiny_patch4_window7_224", "res2net50_26w_4s",
    "dla34", "hrnet_w18_small", "cspresnet50", "inception_v3", "xcit_nano_12_p16_224", "repvgg_a0", "levit_128s",
    "poolformer_s12", "edgenext_xx_small", "mobilevit_xxs", "efficientformer_l1",
)  # fmt: skip
SMALL = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 64, "max_position_embeddings": 64,
}  # fmt: skip


@dataclasses.dataclass
class Row:
    """What became of one architecture."""

    name: str
    error: float = float("nan")
    graphs: int = 0
    breaks: int = 0
    breaks_of_eager: int = 0
    nodes: int = 0
    native_share: float = 0.0
    eager: list[str] = dataclasses.field(default_factory=list)
    failure: str = ""
    skipped: str = ""

    @property
    def good(self) -> bool:
        """Right, and as whole as with dynamo alone."""
        return bool(self.skipped) or (not self.failure and self.error <= BOUND and self.breaks == self.breaks_of_eager)

    def __str__(self) -> str:
        if self.skipped or self.failure:
            return f"{self.name:34} {'skipped' if self.skipped else 'FAILED'}: {self.skipped or self.failure}"
        eager = f"; {len(self.eager)} as eager: {self.eager[0]}" if self.eager else ""
        return (
            f"{self.name:34} error {self.error:.1e}  graphs {self.graphs}  breaks {self.breaks} ({self.breaks_of_eager})  "
            f"nodes {self.nodes}  native {self.native_share:.0%}{eager}"
        )


def transformers_model(name: str, changes: dict[str, Any], vision: bool) -> tuple[torch.nn.Module, dict[str, Any]]:
    """The bare model and one call's arguments."""
    import transformers

    config_class = getattr(transformers, f"{name}Config")
    settings = dict(SMALL, image_size=32, patch_size=8) if vision else dict(SMALL)
    config = config_class(**settings | changes)
    config.use_cache = False
    model = getattr(transformers, f"{name}Model")(config)
    if vision:
        return model, {"pixel_values": torch.randn(1, 3, 32, 32)}
    inputs = {"input_ids": torch.randint(3, 90, (1, 12))}
    if name in ("T5", "Bart"):
        inputs["decoder_input_ids"] = torch.randint(3, 90, (1, 5))
    return model, inputs


def timm_model(name: str) -> tuple[torch.nn.Module, dict[str, Any]]:
    """The model and a small picture."""
    import timm

    model = timm.create_model(name, pretrained=False, num_classes=7)
    size = model.default_cfg["input_size"] if model.default_cfg.get("fixed_input_size") else (3, 96, 96)
    return model, {"x": torch.randn(1, *size)}


def tensors_of(result: Any) -> list[torch.Tensor]:
    """The floating-point results."""
    if hasattr(result, "to_tuple"):
        result = result.to_tuple()
    leaves = torch.utils._pytree.tree_leaves(result)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]


def relative_error(results: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    """The largest, of all results."""
    assert len(results) == len(expected)
    errors = [
        ((one - other).abs().max() / other.abs().max().clamp_min(1e-12)).item()
        for one, other in zip(results, expected, strict=True)
        if other.numel()
    ]
    return max(errors, default=0.0)


def breaks_of_eager(model: torch.nn.Module, inputs: dict[str, Any]) -> int:
    """dynamo's own graph breaks, without us."""
    torch._dynamo.reset()
    counted = torch._dynamo.utils.counters["graph_break"]
    before = sum(counted.values())
    torch.compile(model, backend="eager")(**inputs)
    return sum(counted.values()) - before


def run(name: str, make: Callable[[], tuple[torch.nn.Module, dict[str, Any]]]) -> Row:
    """One architecture."""
    row = Row(name)
    torch.manual_seed(0)
    try:
        model, inputs = make()
        model.eval()
        with torch.no_grad():
            expected = tensors_of(model(**inputs))
            row.breaks_of_eager = breaks_of_eager(model, inputs)
    except Exception as error:  # noqa: BLE001  this version of the package does not have it, or wants other settings
        row.skipped = f"{type(error).__name__}: {error}".split("\n")[0][:160]
        return row
    try:
        torch._dynamo.reset()
        with torch.no_grad():
            report = dynamo.explain(model, **inputs)
            torch._dynamo.reset()
            row.error = relative_error(tensors_of(torch.compile(model, backend="halftone")(**inputs)), expected)
        row.graphs, row.nodes, row.native_share = len(report.graphs), report.nodes, report.native_share
        row.breaks = sum(report.graph_breaks.values())
        row.eager = [graph.eager_reason for graph in report.eager]
    except Exception as error:  # noqa: BLE001  every failure is a row
        row.failure = f"{type(error).__name__}: {error}".split("\n")[0][:300]
    return row


def all_makers() -> dict[str, Callable[[], tuple[torch.nn.Module, dict[str, Any]]]]:
    """Name → what makes it."""
    makers: dict[str, Callable[[], Any]] = {}
    for table, vision in ((TRANSFORMERS, False), (VISION, True)):
        for name, changes in table.items():
            makers[f"transformers/{name}"] = lambda n=name, c=changes, v=vision: transformers_model(n, c, v)
    for name in TIMM:
        makers[f"timm/{name}"] = lambda n=name: timm_model(n)
    return makers


def main() -> int:
    """A line each, then the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    def ring(*_: Any) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, ring)
    rows = []
    for name, make in all_makers().items():
        if options.names and not any(part in name for part in options.names):
            continue
        signal.alarm(SECONDS)
        rows.append(run(name, make))
        signal.alarm(0)
        print(rows[-1], flush=True)
        gc.collect()
    tried = [row for row in rows if not row.skipped]
    print(
        f"{len(tried)} of {len(rows)} could be made; {sum(row.good for row in tried)} are right with dynamo's own breaks; "
        f"{sum(bool(row.eager) for row in tried)} have a graph that runs as eager; "
        f"{sum(bool(row.failure) for row in tried)} failed"
    )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([dataclasses.asdict(row) for row in rows], file, indent=1)
    return 0 if all(row.good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
