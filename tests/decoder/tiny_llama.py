"""A small decoder of the Llama family: as a GGUF file, and as PyTorch operators on the whole sequence at once."""
import math

import numpy
import torch

LAYERS, WIDTH, HEADS, KV_HEADS, HIDDEN, CONTEXT, BASE, EPS = 3, 32, 4, 2, 72, 96, 1000.0, 1e-5
HEAD_WIDTH = WIDTH // HEADS
END = 256  # after the 256 bytes
TOKENS = 257


def byte_alphabet():
    """GPT-2's: the character that stands for each byte in token texts."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{byte: chr(byte) for byte in plain}, **{byte: chr(256 + place) for place, byte in enumerate(others)}}


def make_weights(tied, seed=5):
    random = torch.Generator().manual_seed(seed)

    def matrix(rows, columns):
        return torch.randn(rows, columns, generator=random) / math.sqrt(columns)

    def norm():
        return torch.rand(WIDTH, generator=random) + 0.5

    weights = {"token_embd": torch.randn(TOKENS, WIDTH, generator=random), "output_norm": norm()}
    if not tied:
        weights["output"] = matrix(TOKENS, WIDTH)
    for i in range(LAYERS):
        for part, rows, columns in (("attn_q", WIDTH, WIDTH), ("attn_k", KV_HEADS * HEAD_WIDTH, WIDTH), ("attn_v", KV_HEADS * HEAD_WIDTH, WIDTH),
                                    ("attn_output", WIDTH, WIDTH), ("ffn_gate", HIDDEN, WIDTH), ("ffn_up", HIDDEN, WIDTH),
                                    ("ffn_down", WIDTH, HIDDEN)):
            weights[f"blk.{i}.{part}"] = matrix(rows, columns)
        weights[f"blk.{i}.attn_norm"], weights[f"blk.{i}.ffn_norm"] = norm(), norm()
    return weights


def write(path, weights, metadata=None, architecture="llama", types=None, context=CONTEXT):
    """`metadata`: a function that adds to the writer. `types`: name of a weight to gguf's quantization type."""
    import gguf

    out = gguf.GGUFWriter(path, architecture)
    out.add_name("tiny")
    out.add_context_length(context)
    out.add_embedding_length(WIDTH)
    out.add_block_count(LAYERS)
    out.add_feed_forward_length(HIDDEN)
    out.add_head_count(HEADS)
    out.add_head_count_kv(KV_HEADS)
    out.add_layer_norm_rms_eps(EPS)
    out.add_rope_dimension_count(HEAD_WIDTH)
    out.add_rope_freq_base(BASE)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    alphabet = byte_alphabet()
    out.add_token_list([alphabet[byte] for byte in range(256)] + ["<|end|>"])
    out.add_token_types([1] * 256 + [3])
    out.add_token_merges([])
    out.add_eos_token_id(END)
    if metadata:
        metadata(out)
    for name, tensor in weights.items():
        data = tensor.numpy().astype(numpy.float32)
        kind = (types or {}).get(name)
        if kind is None:
            out.add_tensor(name + ".weight", data)
        else:
            out.add_tensor(name + ".weight", gguf.quants.quantize(data, kind), raw_dtype=kind)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def rotated(x):
    """[t, heads, d]. In GGUF the pairs that turn together are neighbours."""
    t, _, d = x.shape
    angles = torch.outer(torch.arange(t, dtype=torch.float64), BASE ** (-torch.arange(0, d, 2, dtype=torch.float64) / d))
    pairs = torch.view_as_complex(x.double().reshape(t, -1, d // 2, 2).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles).unsqueeze(1)).reshape(x.shape).float()


def normed(x, weight):
    return torch.nn.functional.rms_norm(x, (WIDTH,), weight, EPS)


def logits(weights, tokens):
    """[t, TOKENS]."""
    t = len(tokens)
    x = weights["token_embd"][tokens]
    for i in range(LAYERS):
        w = {name.split(".")[2]: tensor for name, tensor in weights.items() if name.startswith(f"blk.{i}.")}
        n = normed(x, w["attn_norm"])
        q = rotated((n @ w["attn_q"].T).view(t, HEADS, HEAD_WIDTH)).transpose(0, 1)
        k = rotated((n @ w["attn_k"].T).view(t, KV_HEADS, HEAD_WIDTH)).transpose(0, 1)
        v = (n @ w["attn_v"].T).view(t, KV_HEADS, HEAD_WIDTH).transpose(0, 1)
        k, v = (each.repeat_interleave(HEADS // KV_HEADS, 0) for each in (k, v))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + y.transpose(0, 1).reshape(t, WIDTH) @ w["attn_output"].T
        n = normed(x, w["ffn_norm"])
        x = x + (torch.nn.functional.silu(n @ w["ffn_gate"].T) * (n @ w["ffn_up"].T)) @ w["ffn_down"].T
    return normed(x, weights["output_norm"]) @ weights.get("output", weights["token_embd"]).T


def greedy(weights, prompt, count):
    """(tokens, their log-probabilities), until END."""
    tokens, answer, logprobs = list(prompt), [], []
    while len(answer) < count:
        row = torch.log_softmax(logits(weights, tokens)[-1], 0)
        token = int(row.argmax())
        answer.append(token)
        logprobs.append(float(row[token]))
        if token == END:
            break
        tokens.append(token)
    return answer, logprobs
