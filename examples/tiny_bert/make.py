#!/usr/bin/env python3
"""Makes the small BERT beside this script: the architecture of MiniLM with random weights, for machines that can't get the
real one. The files are committed; run this only to change them.
"""
import json
import pathlib
import string
import sys

import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "scripts"))
from export_minilm import Encoder  # noqa: E402

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = """
about after all also an and any are as at back be because been before best big book bread but by can cat city cold come
could day did do dog down during eat even every few find first fish for from get give go good great had has have he help her
here high him his home hot how if in into is it its just keep know large last learn left life light like little long look
made make man many may me moon more morning most mother mountain music my near never new next night no not now of off old on
once one only open or other our out over people play put rain read right river road run said same sea see sentence she
should sleep slow small so some song soon start still stop story street such sun take tell than that the their them then
there these they thing think this time to today tomorrow train tree two under up us use very walk want warm was water way
we week well were what when where which while white who why wind winter with word work world would write year yes you your
""".split()
SUFFIXES = ["##es", "##ed", "##er", "##est", "##ing", "##ion", "##ly", "##ment", "##ness", "##able", "##al", "##ity",
            "##th", "##or", "##en", "##an", "##in", "##on", "##re"]
CONFIG = {
    "architectures": ["BertModel"],
    "hidden_act": "gelu",
    "hidden_size": 32,
    "intermediate_size": 64,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "model_type": "bert",
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "pad_token_id": 0,
    "type_vocab_size": 2,
}


def vocabulary():
    letters = list(string.ascii_lowercase + string.digits)
    return SPECIAL + list(string.punctuation) + letters + ["##" + c for c in letters] + WORDS + SUFFIXES


def random_weights(config):
    generator = torch.Generator().manual_seed(20)
    weights = {}
    for name, tensor in Encoder(config).state_dict().items():
        if tensor.is_floating_point():
            # Far from what a fresh model has, so that a bias, a norm or a head that is left out changes the result.
            center = 1.0 if name.endswith("LayerNorm.weight") else 0.0
            tensor = center + 0.25 * torch.randn(tensor.shape, generator=generator)
        weights[name] = tensor
    return weights


def main():
    tokens = vocabulary()
    assert len(set(tokens)) == len(tokens), "a token is listed twice"
    config = {**CONFIG, "vocab_size": len(tokens)}
    (HERE / "vocab.txt").write_text("\n".join(tokens) + "\n")
    (HERE / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    save_file(random_weights(config), HERE / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
