// Everything that graphs and compiled models know of a weight format, in one place: the operators that stand
// for it, the config that a node has, the fused form, and the kernel. Each format describes itself in its own
// file (bf16_format.cpp, …); nobody else asks for one by name.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "cpu/parallel_for.h"
#include "halftone/graph/graph.h"
#include "halftone/quant/config.h"
#include "kernels/fp32_linear/fp32_linear.h"

namespace halftone {

/// y [m, n] = x [m, k] · Wᵀ, on that many threads.
struct LinearProblem {
  int64_t m = 0, n = 0, k = 0;
  int threads = 1;
  kernels::OutputType type = kernels::OutputType::kFloat32;
};

/// A kernel that takes rows of floats: chosen, its weights packed.
struct ReadyLinear {
  const char* name = nullptr;
  at::Tensor block;
  size_t workspace_bytes = 0;
  std::function<void(const kernels::Fp32LinearArgs&, ParallelFor&)> call;
};

using LinearParts = std::vector<at::Tensor>;
using LinearAttributes = std::vector<int64_t>;

struct LinearFormat {
  std::string_view name;                          ///< in halftone::fused_linear: "int8"; "": no fused form
  std::string_view target;                        ///< "halftone::int8_linear"
  std::vector<std::string_view> parts = {};       ///< argument names of the weight's parts, in order
  size_t required_parts = 1;                      ///< those after these may be absent
  std::vector<std::string_view> attributes = {};  ///< argument names of the constants, in order

  std::string_view embedding = "";    ///< the operator that looks up rows of such a weight; "": none
  std::string_view convolution = "";  ///< the operator that restores the weight of a convolution; "": none
  /// The config of a node with one of these operators. kInvalidArgument where its operands fit none.
  QuantConfig (*config)(const Node& node) = nullptr;
  int weights_per_column = 1;  ///< k = this × the second size of "weight", where no operand says it

  // The rest is asked of formats with a fused form only.
  /// x may be rows that are quantized already. Such a format has a native step of its own and no `ready`.
  bool takes_quantized_rows = false;
  ReadyLinear (*ready)(const LinearParts& parts, const LinearAttributes& attributes,
                       const LinearProblem& problem) = nullptr;
  /// Why there is no native step for such a weight; nullptr: there is one.
  const char* (*refuse)(const LinearParts& parts, const LinearAttributes& attributes) = nullptr;
  /// Bits of the integers that are multiplied; 0: floats. Null: floats always.
  int (*multiplied_bits)(const LinearAttributes& attributes) = nullptr;
  /// Whether the parts of two weights may be laid below each other as one weight. Null: always.
  bool (*may_stack)(const LinearAttributes& attributes) = nullptr;
};

/// aten::linear: no config.
const LinearFormat& fp32_linear_format();
const LinearFormat& int8_weight_only_linear_format();
const LinearFormat& int8_linear_format();
const LinearFormat& int4_linear_format();
const LinearFormat& fp8_linear_format();
const LinearFormat& bf16_linear_format();
const LinearFormat& intx_linear_format();
const LinearFormat& custom_linear_format();

/// All that have a config.
std::span<const LinearFormat* const> linear_formats();

/// Constant operands of a node, for `config`; where it has none of that name (or not of that type), what is
/// given here.
bool flag_of(const Node& node, std::string_view name);
int64_t number_of(const Node& node, std::string_view name, int64_t otherwise);
bool is_given(const Node& node, std::string_view name);  ///< and not None

}  // namespace halftone
