"""Folders in Hugging Face's form, and the program that runs decoders on tokens."""
import json
import os
import subprocess

import torch

import tiny_llama


def tokenizer_json(texts, special=()):
    """Each character is a token, and nothing is merged."""
    added = [{"id": index, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for index, text in special]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
            "post_processor": None, "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": {text: index for index, text in enumerate(texts)}, "merges": []}}


def byte_texts(count=256):
    alphabet = tiny_llama.byte_alphabet()
    return [alphabet[byte] for byte in range(count)]


PARTS = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm",
         "ffn_norm": "post_attention_layernorm"}
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def in_halves(rows, heads):
    """transformers has the numbers that turn together half a head apart, GGUF beside each other."""
    return rows.reshape(heads, tiny_llama.HEAD_WIDTH // 2, 2, -1).transpose(1, 2).reshape(rows.shape).contiguous()


def tiny_tensors(weights):
    """tiny_llama's weights under the names of transformers."""
    tensors = {}
    for name, tensor in weights.items():
        _, layer, part = [None, None, name] if name in WHOLE else name.split(".")
        if part in ("attn_q", "attn_k"):
            tensor = in_halves(tensor, tiny_llama.HEADS if part == "attn_q" else tiny_llama.KV_HEADS)
        tensors[(WHOLE[part] if layer is None else f"model.layers.{layer}.{PARTS[part]}") + ".weight"] = tensor
    return tensors


def tiny_config(tied=True):
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": tiny_llama.WIDTH,
            "num_hidden_layers": tiny_llama.LAYERS, "num_attention_heads": tiny_llama.HEADS,
            "num_key_value_heads": tiny_llama.KV_HEADS, "intermediate_size": tiny_llama.HIDDEN, "vocab_size": tiny_llama.TOKENS,
            "max_position_embeddings": tiny_llama.CONTEXT, "rms_norm_eps": tiny_llama.EPS, "rope_theta": tiny_llama.BASE,
            "hidden_act": "silu", "tie_word_embeddings": tied, "torch_dtype": "float32"}


def write_tiny(folder, weights, config=None, shards=None, dtype=torch.float32):
    """`shards`: file name to names of tensors; without it one file."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    tensors = {name: tensor.to(dtype) for name, tensor in tiny_tensors(weights).items()}
    (folder / "config.json").write_text(json.dumps(config or tiny_config("output" not in weights)))
    texts = byte_texts()
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json(texts, [(tiny_llama.END, "<|end|>")])))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [tiny_llama.END], "bos_token_id": None}))
    if shards is None:
        save_file(tensors, folder / "model.safetensors")
        return folder
    for file, names in shards.items():
        save_file({name: tensors[name] for name in names}, folder / file)
    index = {"metadata": {"total_size": 0}, "weight_map": {name: file for file, names in shards.items() for name in names}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


class Dump:
    """One process of decoder_dump for many models."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "OMP_NUM_THREADS": "1"})

    def __call__(self, model, tokens=(1, 2), pieces=None, context=64):
        job = {"model": str(model), "tokens": list(tokens), "pieces": pieces or [1] * len(tokens), "context": context}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"decoder_dump ended with {self.process.wait()} at {model}")
        return json.loads(line)

    def logits(self, *arguments, **options):
        answer = self(*arguments, **options)
        if "error" in answer:
            raise AssertionError(answer["error"])
        return torch.tensor(answer["logits"])

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
