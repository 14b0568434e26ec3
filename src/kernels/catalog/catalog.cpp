#include "kernels/catalog/catalog.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/nearest.h"
#include "kernels/attention/attention.h"
#include "kernels/bf16_linear/bf16_linear.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/embedding_rows/embedding_rows.h"
#include "kernels/fp32_conv/fp32_conv.h"
#include "kernels/fp32_linear/fp32_linear.h"
#include "kernels/fp8_linear/fp8_linear.h"
#include "kernels/int4_dynamic_linear/int4_dynamic_linear.h"
#include "kernels/int4_weight_only_linear/int4_weight_only_linear.h"
#include "kernels/int8_conv/int8_conv.h"
#include "kernels/int8_linear/int8_linear.h"
#include "kernels/int8_weight_only_linear/int8_weight_only_linear.h"
#include "kernels/norm/norm.h"
#include "kernels/pooling/pooling.h"
#include "kernels/quantize_rows/quantize_rows.h"
#include "kernels/quantized_ops/quantized_ops.h"
#include "kernels/softmax/softmax.h"

namespace halftone::kernels {
namespace {

constexpr std::string_view kSchemes[] = {"fp32",      "bf16wo",     "int8",       "int8-7bit",  "int8wo",
                                         "int4wo:32", "int4wo:64",  "int4wo:128", "int4wo:256", "int4dq:32",
                                         "int4dq:64", "int4dq:128", "int4dq:256", "fp8wo",      "fp8dq"};

template <typename Kernel>
void append(std::vector<CatalogEntry>& all, std::string_view operation, std::span<const Kernel> table) {
  for (const Kernel& kernel : table) all.push_back({operation, kernel.name, kernel.isa});
}

// The number after the colon; 0 if there is none.
int group_of(std::string_view scheme) {
  const size_t colon = scheme.find(':');
  int group = 0;
  if (colon != scheme.npos) std::from_chars(scheme.data() + colon + 1, scheme.data() + scheme.size(), group);
  return group;
}

}  // namespace

std::vector<CatalogEntry> kernel_catalog() {
  std::vector<CatalogEntry> all;
  append(all, "int8_linear", int8_linear_kernels());
  append(all, "int8_weight_only_linear", int8_weight_only_kernels());
  append(all, "int4_weight_only_linear", int4_weight_only_kernels());
  append(all, "int4_dynamic_linear", int4_dynamic_kernels());
  append(all, "fp32_linear", fp32_linear_kernels());
  append(all, "fp32_conv", fp32_conv_kernels());
  append(all, "int8_conv", int8_conv_kernels());
  append(all, "bf16_linear", bf16_linear_kernels());
  append(all, "fp8_linear", fp8_linear_kernels());
  append(all, "embedding_rows", embedding_rows_kernels());
  append(all, "quantize_rows", quantize_rows_kernels());
  append(all, "norm", norm_kernels());
  append(all, "softmax", softmax_kernels());
  append(all, "attention", attention_kernels());
  append(all, "elementwise", elementwise_kernels());
  append(all, "pooling", pool_kernels());
  append(all, "quantized_ops", quantized_ops_kernels());
  return all;
}

std::span<const std::string_view> linear_schemes() {
  return kSchemes;
}

std::vector<KernelVerdict> explain_linear(int64_t m, int64_t n, int64_t k, std::string_view scheme, Isa isa) {
  if (std::find(std::begin(kSchemes), std::end(kSchemes), scheme) == std::end(kSchemes)) {
    const std::vector<std::string> known(std::begin(kSchemes), std::end(kSchemes));
    fail(ErrorCode::kInvalidArgument, "unknown scheme \"{}\"{}; there are {}", scheme,
         did_you_mean(scheme, known), fmt::join(nearest_first(scheme, known), ", "));
  }
  if (scheme == "fp32") return explain_choice(fp32_linear_kernels(), Fp32LinearProblem{m, n, k}, isa);
  if (scheme == "bf16wo") return explain_choice(bf16_linear_kernels(), Bf16LinearProblem{m, n, k}, isa);
  if (scheme == "int8") return explain_choice(int8_linear_kernels(), Int8LinearProblem{m, n, k, 8}, isa);
  if (scheme == "int8-7bit") return explain_choice(int8_linear_kernels(), Int8LinearProblem{m, n, k, 7}, isa);
  if (scheme == "int8wo")
    return explain_choice(int8_weight_only_kernels(), Int8WeightOnlyProblem{m, n, k}, isa);
  if (scheme == "fp8wo") return explain_choice(fp8_linear_kernels(), Fp8LinearProblem{m, n, k}, isa);
  if (scheme == "fp8dq") {
    const Fp8LinearProblem problem{m, n, k, Fp8Activations::kDynamicE4m3};
    return explain_choice(fp8_linear_kernels(), problem, isa);
  }
  const int group = group_of(scheme);
  if (scheme.starts_with("int4dq"))
    return explain_choice(int4_dynamic_kernels(), Int4DynamicProblem{m, n, k, group}, isa);
  return explain_choice(int4_weight_only_kernels(), Int4WeightOnlyProblem{m, n, k, group}, isa);
}

}  // namespace halftone::kernels
