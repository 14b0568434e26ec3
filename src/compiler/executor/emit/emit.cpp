#include "compiler/executor/emit.h"

#include <map>

#include "compiler/executor/emit/emit_int8.h"

namespace halftone::compiler {

Emitter try_emitter(std::string_view target) {
  static const std::map<std::string_view, Emitter> table = {
      {"halftone::fused_linear", emit_linear},
      {"halftone::conv", emit_conv},
      {"halftone::norm", emit_norm},
      {"halftone::quantize_rows", emit_quantize_rows},
      {"halftone::attention", emit_attention},
      {"halftone::int8_embedding", emit_embedding},
      {"halftone::int4_embedding", emit_embedding},
      {"halftone::bf16_embedding", emit_embedding},
      {"aten::embedding", emit_embedding},
      {"aten::gelu", emit_activation},
      {"aten::relu", emit_activation},
      {"aten::silu", emit_activation},
      {"aten::add.Tensor", emit_binary},
      {"aten::mul.Tensor", emit_binary},
      {"aten::softmax.int", emit_softmax},
      {"aten::_softmax", emit_softmax},
      {"aten::max_pool1d", emit_pooling},
      {"aten::max_pool2d", emit_pooling},
      {"aten::max_pool2d_with_indices", emit_pooling},
      {"aten::max_pool3d", emit_pooling},
      {"aten::max_pool3d_with_indices", emit_pooling},
      {"aten::avg_pool1d", emit_pooling},
      {"aten::avg_pool2d", emit_pooling},
      {"aten::avg_pool3d", emit_pooling},
      {"aten::adaptive_avg_pool1d", emit_pooling},
      {"aten::adaptive_avg_pool2d", emit_pooling},
      {"aten::_adaptive_avg_pool2d", emit_pooling},
      {"aten::adaptive_avg_pool3d", emit_pooling},
      {"aten::_adaptive_avg_pool3d", emit_pooling},
      {"aten::adaptive_max_pool1d", emit_pooling},
      {"aten::adaptive_max_pool2d", emit_pooling},
      {"aten::adaptive_max_pool3d", emit_pooling},
      {"aten::mean.dim", emit_pooling},
      {"aten::amax", emit_pooling},
      {"aten::cat", emit_cat},
      {"aten::index_copy", emit_index_copy},
      {"aten::to.dtype", emit_copy},
      {"aten::_to_copy", emit_copy},
      {"aten::clone", emit_copy},
      {"aten::contiguous", emit_copy},
      {"aten::reshape", emit_copy},
      {"aten::flatten.using_ints", emit_copy},
      {"aten::_reshape_copy", emit_copy},
      {"aten::view_copy", emit_copy},
  };
  const auto found = table.find(target);
  return found == table.end() ? try_int8_emitter(target) : found->second;
}

}  // namespace halftone::compiler
