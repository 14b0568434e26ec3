"""Decoders of every architecture beside `transformers`: small random models, saved by save_pretrained, and as GGUF files.

    architectures_test.py DECODER_DUMP [TEST…]
"""
import json
import math
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import numpy
import torch

import folders

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import transformers
except ImportError as error:
    transformers = None
    why_not = error
try:
    import gguf
except ImportError:
    gguf = None

DUMP = str(pathlib.Path(sys.argv.pop(1)).resolve())
WIDTH, TOKENS, CONTEXT, LENGTH, WINDOW = 64, 100, 64, 45, 8
SIZES = {"vocab_size": TOKENS, "hidden_size": WIDTH, "intermediate_size": 112, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": CONTEXT, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
# transformers' class, and what its config has besides SIZES.
MODELS = {
    "llama": ("Llama", {"rope_theta": 500.0}),
    "llama_untied_biases": ("Llama", {"tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True}),
    "llama_head_dim": ("Llama", {"head_dim": 24, "num_key_value_heads": 4}),
    "llama3": ("Llama", {"rope_theta": 500.0, "rope_scaling": LLAMA3}),
    "llama_linear": ("Llama", {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    "qwen2": ("Qwen2", {"rope_theta": 10000.0}),
    "qwen2_window": ("Qwen2", {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1}),
    "qwen3": ("Qwen3", {"head_dim": 32, "tie_word_embeddings": False}),
    "mistral": ("Mistral", {"sliding_window": WINDOW, "head_dim": 16}),
    "mistral_whole": ("Mistral", {"sliding_window": None}),
    "gemma": ("Gemma", {"head_dim": 32}),
    "gemma2": ("Gemma2", {"head_dim": 16, "sliding_window": WINDOW, "query_pre_attn_scalar": 24, "attn_logit_softcapping": 5.0,
                          "final_logit_softcapping": 3.0, "num_hidden_layers": 4}),
    "gemma3": ("Gemma3Text", {"head_dim": 16, "sliding_window": WINDOW, "query_pre_attn_scalar": 24, "num_hidden_layers": 7}),
    "gemma3_scaled": ("Gemma3Text", {"head_dim": 16, "sliding_window": WINDOW, "query_pre_attn_scalar": 24, "num_hidden_layers": 7,
                                     "rope_scaling": {"rope_type": "linear", "factor": 8.0}}),
    "phi3": ("Phi3", {"sliding_window": None}),
    "phi3_window": ("Phi3", {"sliding_window": WINDOW, "partial_rotary_factor": 0.75}),
    "olmo2": ("Olmo2", {}),
    "granite": ("Granite", {"embedding_multiplier": 12.0, "attention_multiplier": 0.1, "residual_multiplier": 0.22, "logits_scaling": 4.0}),
    "smollm3": ("SmolLM3", {"num_hidden_layers": 5, "tie_word_embeddings": True}),
    "gpt2": ("GPT2", {}),
    "gpt_neox": ("GPTNeoX", {"rotary_pct": 0.25}),
    "gpt_neox_serial": ("GPTNeoX", {"use_parallel_residual": False}),
}
# Gemma 2 caps its scores, for which there are no native steps.
NOT_NATIVE = {"gemma2"}


if transformers is not None:
    transformers.utils.logging.disable_progress_bar()


def make(name):
    kind, more = MODELS[name]
    sizes = {**SIZES, **more}
    for key in ("num_key_value_heads", "intermediate_size") if kind.startswith("GPT") else ():
        del sizes[key]
    if kind == "GPTNeoX":
        sizes["intermediate_size"] = 4 * WIDTH
    config = getattr(transformers, kind + "Config")(**sizes, attn_implementation="eager")
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    random = torch.Generator().manual_seed(3)
    for key, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=random)
        if parameter.dim() == 2:
            values /= math.sqrt(parameter.shape[1]) if "embed" not in key and "wte" not in key else 4
        elif ("norm" in key or "ln_" in key) and "weight" in key:
            values = torch.rand(parameter.shape, generator=random) + (-0.5 if "gemma" in name else 0.5)
        else:
            values /= 4
        parameter.data.copy_(values)
    return model


def save(model, folder, **options):
    model.save_pretrained(folder, **options)
    (folder / "tokenizer.json").write_text(json.dumps(folders.tokenizer_json(folders.byte_texts(TOKENS))))


def tokens_of(count=LENGTH):
    return torch.randint(TOKENS, (count,), generator=torch.Generator().manual_seed(5)).tolist()


def expected_logits(model, tokens):
    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0]


def as_version_4(folder):
    """config.json with the keys that older versions of transformers wrote, as almost all published models have them."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config.pop("layer_types", None)
    ropes = config.pop("rope_parameters", None)
    if ropes:
        local = ropes.get("sliding_attention")
        rope = ropes.get("full_attention", ropes)
        config["rope_theta"] = rope["rope_theta"]
        if local and "rope_theta" in local and "full_attention" in ropes:
            config["rope_local_base_freq"] = local["rope_theta"]
        if rope.get("rope_type", "default") != "default":
            config["rope_scaling"] = {"type" if rope["rope_type"] == "linear" else "rope_type": rope["rope_type"],
                                      **{key: value for key, value in rope.items() if key not in ("rope_theta", "rope_type")}}
        if "partial_rotary_factor" in rope and config["model_type"] == "gpt_neox":
            config["rotary_pct"], config["rotary_emb_base"] = rope["partial_rotary_factor"], config.pop("rope_theta")
        elif "partial_rotary_factor" in rope:
            config["partial_rotary_factor"] = rope["partial_rotary_factor"]
    path.write_text(json.dumps(config))


class ArchitectureTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="halftone_architectures_"))
        cls.dump = folders.Dump(DUMP)

    @classmethod
    def tearDownClass(cls):
        cls.dump.close()
        shutil.rmtree(cls.root)

    def expect_logits(self, model, expected, tokens, piece_lists):
        for pieces in piece_lists:
            found = self.dump.logits(model, tokens, pieces, context=CONTEXT)
            rows = expected[torch.tensor(pieces).cumsum(0) - 1]
            self.assertLess(float((found - rows).abs().max()), 1e-4 * max(1.0, float(rows.abs().max())), (model, pieces))
            # Other weights, another order of layers or a missing part would change all of them.
            self.assertGreater(float(rows.std()), 0.05)


@unittest.skipIf(transformers is None, "no transformers")
class Folders(ArchitectureTest):
    def test_every_architecture(self):
        tokens = tokens_of()
        for name in MODELS:
            with self.subTest(name):
                model = make(name)
                folder = self.root / name
                save(model, folder)
                expected = expected_logits(model, tokens)
                self.expect_logits(folder, expected, tokens, ([LENGTH], [1] * LENGTH, [20, 1, LENGTH - 21]))
                left = self.dump(folder)["left_to_aten"]
                self.assertEqual(left == [], name not in NOT_NATIVE, left)
                as_version_4(folder)
                self.expect_logits(folder, expected, tokens, ([LENGTH],))

    def test_shards_in_half_precision(self):
        tokens = tokens_of()
        for name, dtype in (("qwen3", torch.bfloat16), ("gemma3", torch.float16)):
            model = make(name)
            for parameter in model.parameters():
                parameter.data.copy_(parameter.data.to(dtype))
            expected = expected_logits(model, tokens)
            folder = self.root / f"half_{name}"
            save(model.to(dtype), folder, max_shard_size="60KB")
            self.assertGreater(len(list(folder.glob("*.safetensors"))), 2)
            self.expect_logits(folder, expected, tokens, ([LENGTH],))


def gguf_keys(out, name, config):
    """The metadata as llama.cpp's converter writes it."""
    out.add_context_length(CONTEXT)
    out.add_embedding_length(WIDTH)
    out.add_block_count(config.num_hidden_layers)
    out.add_feed_forward_length(getattr(config, "intermediate_size", None) or 4 * WIDTH)
    out.add_head_count(config.num_attention_heads)
    out.add_head_count_kv(getattr(config, "num_key_value_heads", config.num_attention_heads))
    if hasattr(config, "rms_norm_eps"):
        out.add_layer_norm_rms_eps(config.rms_norm_eps)
    else:
        out.add_layer_norm_eps(getattr(config, "layer_norm_eps", None) or config.layer_norm_epsilon)
    head = getattr(config, "head_dim", None) or WIDTH // config.num_attention_heads
    out.add_key_length(head)
    out.add_value_length(head)
    if getattr(config, "sliding_window", None):
        out.add_sliding_window(config.sliding_window)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(folders.byte_texts(TOKENS))
    out.add_token_types([1] * TOKENS)
    out.add_token_merges([])
    out.add_eos_token_id(2)
    return head


def neighbours(rows, heads):
    """The numbers of a head that turn together side by side, as llama.cpp's converter puts them for some architectures."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, -1).transpose(1, 2).reshape(rows.shape)


def rope_of(config, key):
    """From the config of either version of transformers."""
    ropes = getattr(config, "rope_parameters", None) or {}
    if key == "local":
        return ropes["sliding_attention"]["rope_theta"] if "sliding_attention" in ropes else config.rope_local_base_freq
    ropes = ropes.get("full_attention", ropes)
    return ropes["rope_theta"] if "rope_theta" in ropes else config.rope_theta


def write_gguf(path, name, model, architecture, factors=None):
    config = model.config
    out = gguf.GGUFWriter(path, architecture)
    head = gguf_keys(out, name, config)
    if architecture != "gpt2":
        out.add_rope_freq_base(rope_of(config, "theta"))
    if name == "gemma3_scaled":
        out.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        out.add_rope_scaling_factor(8.0)
    if architecture == "granite":
        out.add_embedding_scale(config.embedding_multiplier)
        out.add_residual_scale(config.residual_multiplier)
        out.add_logit_scale(config.logits_scaling)
        out.add_attention_scale(config.attention_multiplier)
    if architecture == "gemma2":
        out.add_attn_logit_softcapping(config.attn_logit_softcapping)
        out.add_final_logit_softcapping(config.final_logit_softcapping)
    if architecture in ("gemma2", "gemma3"):
        out.add_float32("%s.attention.scale" % architecture, config.query_pre_attn_scalar**-0.5)
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, architecture.upper()), config.num_hidden_layers)
    neighbour_pairs = architecture in ("llama", "granite", "smollm3")
    for key, tensor in model.state_dict().items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if neighbour_pairs and ("q_proj" in key or "k_proj" in key):
            tensor = neighbours(tensor, config.num_attention_heads if "q_proj" in key else config.num_key_value_heads)
        if architecture.startswith("gemma") and ("norm" in key or "ln_" in key) and "weight" in key:
            tensor = tensor + 1
        if architecture == "gpt2" and "c_" in key and tensor.dim() == 2:
            tensor = tensor.T
        stem, kind = key.rsplit(".", 1)
        out.add_tensor(f"{names.get_name(stem)}.{kind}", tensor.contiguous().numpy().astype(numpy.float32))
    if factors is not None:
        assert len(factors) == head // 2
        out.add_tensor("rope_freqs.weight", numpy.array(factors, numpy.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


@unittest.skipIf(transformers is None or gguf is None, "no transformers or no gguf")
class GgufFiles(ArchitectureTest):
    def test_files_and_folders_agree(self):
        tokens = tokens_of()
        files = {"llama": "llama", "llama_untied_biases": "llama", "llama3": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gemma": "gemma",
                 "gemma2": "gemma2", "gemma3": "gemma3", "gemma3_scaled": "gemma3", "phi3": "phi3", "olmo2": "olmo2", "granite": "granite",
                 "smollm3": "smollm3", "mistral": "llama", "gpt2": "gpt2"}
        for name, architecture in files.items():
            with self.subTest(name):
                model = make(name)
                factors = None
                if name == "llama3":
                    base = 500.0 ** -(torch.arange(0, 16, 2, dtype=torch.float64) / 16)
                    factors = (base / model.model.rotary_emb.inv_freq.double()).tolist()
                path = self.root / f"{name}.gguf"
                write_gguf(path, name, model, architecture, factors)
                self.expect_logits(path, expected_logits(model, tokens), tokens, ([LENGTH], [1] * LENGTH))

    def test_qwen2_needs_its_biases(self):
        model = make("qwen2")
        path = self.root / "no_biases.gguf"
        state = model.state_dict
        model.state_dict = lambda: {key: value for key, value in state().items() if not key.endswith("1.self_attn.k_proj.bias")}
        write_gguf(path, "qwen2", model, "qwen2")
        self.assertIn("blk.1.attn_k.bias is missing", self.dump(path)["error"])


if __name__ == "__main__":
    if transformers is None:
        print(f"architectures_test: skipped, the Python package transformers is not usable here: {why_not}")
        sys.exit(77)
    unittest.main()
