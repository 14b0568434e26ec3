"""Where Halftone's partitions differ from torch's on the same joint graph, and why."""
import torch

DEAD_ATTENTION = ("torch leaves a copy of attention in backward that nothing reads: the operator carries the tag of random "
                  "ones, which its removal of dead code spares, although the probability of dropout is 0 here")
DEAD_DROPOUT = ("for the same reason torch leaves copies of dropout in backward, with the softmax and the product before them: "
                "nothing reads them, but they draw random numbers again")
MORE_VIEWS = ("torch's list of views lacks transpose and split_with_sizes, so it saves such views; ours makes them again, and "
              "the cheap operators before them, from less")

ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"

# (case, partitioner, part) -> ({operator: ours minus Python's}, reason)
KNOWN = {
    **{(f"{model}/{table}", "default", "backward"): ({ATTENTION: -1}, DEAD_ATTENTION)
       for model in ("transformer_layer", "transformer_norm_first") for table in ("plain", "default")},
    **{(f"deep_transformer/{table}", "default", "backward"):
       ({"aten::_safe_softmax": -4, "aten::bmm": -4, "aten::native_dropout": -4}, DEAD_DROPOUT)
       for table in ("plain", "default")},
    ("pointwise/plain", "min_cut", "backward"): ({"aten::mul.Tensor": 1}, MORE_VIEWS),
    ("pointwise/default", "min_cut", "backward"): ({"aten::exp": 1, "aten::mul.Tensor": 1}, MORE_VIEWS),
    ("pointwise/core", "min_cut", "backward"): ({"aten::exp": 1, "aten::mul.Tensor": 1}, MORE_VIEWS),
}

# With torch 2.14.1 and 2.15.0 these counts differ, and default_partition of ours saves no more than min-cut. Read from the counts of
# operators; the graphs themselves were not looked at.
MASKS_IN_BACKWARD = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 14)
SAVED_MASKS = ("torch's min-cut has the mask (of relu, of ignored classes) in forward, ours does not; bytes are checked as everywhere")
if MASKS_IN_BACKWARD:
    for table in ("default", "core"):
        KNOWN[(f"transformer_layer/{table}", "min_cut", "forward")] = ({"aten::le.Scalar": -1}, SAVED_MASKS)
        KNOWN[(f"transformer_layer/{table}", "min_cut", "backward")] = ({"aten::le.Scalar": 1}, SAVED_MASKS)
    KNOWN[("cross_entropy/core", "min_cut", "forward")] = ({"aten::ne.Scalar": -1}, SAVED_MASKS)

# Models of which min-cut, with its usual rules, saves as many bytes as default_partition of ours does (which shares memory
# between views, as torch's does not): what backward reads are operands of matrix products, statistics of norms and inputs of
# activations, none of which torch's min-cut computes again either.
NOTHING_TO_RECOMPUTE = {
    *(f"{model}/{table}" for table in ("plain", "default")
      for model in ("mlp", "layer_norm_block", "transformer_norm_first", "embedding", "cross_entropy", "gelu_mlp", "residual",
                    "attention", "group_norm")),
    "cross_entropy/core", "transformer_layer/plain", "conv_batch_norm/plain", "activations/plain", "dropout/plain", "deep_transformer/plain",
}

if MASKS_IN_BACKWARD:  # nor does default_partition save a mask there
    NOTHING_TO_RECOMPUTE |= {"transformer_layer/default", "transformer_layer/core"}

# Models of which even torch's default_partition saves no value twice: convolutions and norms that keep their inputs.
NOTHING_SAVED_TWICE = {"group_norm/plain", "group_norm/default"}
