#include "compiler/executor/lower.h"

#include <map>

#include "compiler/executor/lower_int8.h"

namespace halftone::compiler {

Lowering try_lowering(std::string_view target) {
  static const std::map<std::string_view, Lowering> table = {
      {"halftone::fused_linear", lower_linear},
      {"halftone::conv", lower_conv},
      {"halftone::norm", lower_norm},
      {"halftone::quantize_rows", lower_quantize_rows},
      {"halftone::attention", lower_attention},
      {"halftone::int8_embedding", lower_embedding},
      {"halftone::int4_embedding", lower_embedding},
      {"halftone::bf16_embedding", lower_embedding},
      {"aten::embedding", lower_embedding},
      {"aten::gelu", lower_activation},
      {"aten::relu", lower_activation},
      {"aten::silu", lower_activation},
      {"aten::add.Tensor", lower_binary},
      {"aten::mul.Tensor", lower_binary},
      {"aten::softmax.int", lower_softmax},
      {"aten::_softmax", lower_softmax},
      {"aten::max_pool1d", lower_pooling},
      {"aten::max_pool2d", lower_pooling},
      {"aten::max_pool2d_with_indices", lower_pooling},
      {"aten::max_pool3d", lower_pooling},
      {"aten::max_pool3d_with_indices", lower_pooling},
      {"aten::avg_pool1d", lower_pooling},
      {"aten::avg_pool2d", lower_pooling},
      {"aten::avg_pool3d", lower_pooling},
      {"aten::adaptive_avg_pool1d", lower_pooling},
      {"aten::adaptive_avg_pool2d", lower_pooling},
      {"aten::_adaptive_avg_pool2d", lower_pooling},
      {"aten::adaptive_avg_pool3d", lower_pooling},
      {"aten::_adaptive_avg_pool3d", lower_pooling},
      {"aten::adaptive_max_pool1d", lower_pooling},
      {"aten::adaptive_max_pool2d", lower_pooling},
      {"aten::adaptive_max_pool3d", lower_pooling},
      {"aten::mean.dim", lower_pooling},
      {"aten::amax", lower_pooling},
      {"aten::cat", lower_cat},
      {"aten::to.dtype", lower_copy},
      {"aten::_to_copy", lower_copy},
      {"aten::clone", lower_copy},
      {"aten::contiguous", lower_copy},
      {"aten::reshape", lower_copy},
      {"aten::flatten.using_ints", lower_copy},
      {"aten::_reshape_copy", lower_copy},
      {"aten::view_copy", lower_copy},
  };
  const auto found = table.find(target);
  return found == table.end() ? try_int8_lowering(target) : found->second;
}

}  // namespace halftone::compiler
