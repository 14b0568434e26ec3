"""Where the graphs of C++ models differ from those of the same models in Python, and why."""
from known_differences import ATTENTION, DEAD_ATTENTION

WITHOUT_STATISTICS = ("instance norm is batch norm without running statistics: torch gives that case another name, which "
                      "computes the same")
OWN_GRU = ("Python takes gru apart in a way of its own, without writes; ours traces C++'s cells, which write to thirds of one "
           "tensor (slice_scatter), before which autograd copies (clone); Python's steps keep a dimension of size 1, over which backward sums")
FEWER_COPIES = ("torch traces how autograd copies gradients through memory where the model writes to views, and copies a "
                "constant; ours keeps the values alone")
MASK_FROM_RESULT = ("torch saves relu's mask beside relu's result, which is saved for the next product anyway; ours saves the "
                    "result alone and makes the mask from it in backward")
DETACHED = ("torch's graph holds a detach between relu and its backward, which passes for a trip to memory; without it the same "
            "rules save what relu takes, which is as large, and run relu again")

TABLES = ("none", "default")
WAYS = ("default", "min_cut")
PARTS = ("forward", "backward")


def everywhere(model, part, counts, reason, ways=WAYS, tables=TABLES):
    return {(model, table, way, part): (counts, reason) for table in tables for way in ways}


# (model, table, partitioner, part) -> ({operator: ours minus Python's}, reason)
KNOWN = {
    **everywhere("instance_norm", "forward", {"aten::_native_batch_norm_legit.no_stats": -1, "aten::native_batch_norm": 1},
                 WITHOUT_STATISTICS),
    **everywhere("gru", "forward", {"aten::cat": -1, "aten::clone": 10, "aten::slice_scatter": 25, "aten::stack": 1,
                                    "aten::unsafe_split.Tensor": 10}, OWN_GRU),
    **everywhere("gru", "backward", {"aten::sum.dim_IntList": -15}, OWN_GRU),
    **everywhere("scaled_dot_product_attention", "backward", {ATTENTION: -1}, DEAD_ATTENTION, ways=["default"]),
    **everywhere("character_transformer", "backward", {ATTENTION: -2}, DEAD_ATTENTION, ways=["default"]),
    **{key: entry for model in ("transformer_encoder_layer", "transformer_decoder_layer") for part, sign in zip(PARTS, (-1, 1))
       for key, entry in everywhere(model, part, {"aten::le.Scalar": sign}, MASK_FROM_RESULT, ["min_cut"], ["default"]).items()},
    **everywhere("dropout", "backward", {"aten::relu": 1}, DETACHED, ["min_cut"], ["none"]),
    **everywhere("writes", "forward", {"aten::lift_fresh_copy": -1}, FEWER_COPIES),
    **everywhere("writes", "backward", {"aten::copy": -2, "aten::new_empty_strided": -1}, FEWER_COPIES, ways=["default"]),
    **everywhere("writes", "backward", {"aten::copy": -2, "aten::lift_fresh_copy": -1, "aten::new_empty_strided": -1},
                 FEWER_COPIES, ways=["min_cut"]),
}

# Models whose C++ layer calls one operator where Python's layer never does: nothing can be compared.
OTHER_OPERATORS = {
    "lstm": ("where gradients are needed Python takes lstm apart; C++'s calls mkldnn_rnn_layer, compiled or not, which keeps a "
             "workspace for its backward"),
}

# Models of which no recomputation that min-cut's usual rules allow saves anything over our own default_partition, which saves
# less than torch's by value (torch's own min-cut gains on "writes": 64 to 48 bytes). What backward reads are operands of
# products and convolutions, statistics of norms, and inputs or results of activations that no cheap operator gives.
NOTHING_TO_RECOMPUTE = {
    *((model, table) for table in TABLES for model in (
        "mlp", "mlp_gelu", "mlp_silu_mish", "layer_norm", "group_norm", "batch_norm_1d", "batch_norm_2d", "instance_norm",
        "residual_convolutions", "embedding", "tied_weights", "gru", "multihead_attention", "scaled_dot_product_attention",
        "transformer_encoder_layer", "transformer_decoder_layer", "custom_function", "no_grad_inside", "many_results",
        "writes", "nested_arguments", "character_transformer")),
    *((model, "core") for model in ("batch_norm_2d", "tied_weights")),
    *((model, "none") for model in ("mlp_bounded", "mlp_hard", "transposed_convolution", "dropout")),
}
