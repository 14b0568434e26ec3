#include "kernels/catalog/catalog.h"

#include "base/scheme_table.h"
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

template <typename Kernel>
void append(std::vector<CatalogEntry>& all, std::string_view operation, std::span<const Kernel> table) {
  for (const Kernel& kernel : table) all.push_back({operation, kernel.name, kernel.isa});
}

// As quant/static_int8 runs it: a convolution of kernel 1 over m pixels.
Int8ConvProblem linear_as_conv(int64_t m, int64_t n, int64_t k, const SchemeEntry& entry) {
  ConvShape shape;
  shape.batch = m;
  shape.in_channels = k;
  shape.out_channels = n;
  return {shape, entry.weight_bits, entry.activation_bits};
}

NamedScheme scheme_with_kernel(std::string_view name) {
  for (const SchemeEntry& entry : scheme_table())
    if (!entry.kernels_name.empty() && entry.kernels_name == name) return {&entry, 0};
  const NamedScheme found = named_scheme(name);
  if (found.entry->kernel == SchemeKernel::kNone) refuse_scheme(name, *found.entry);
  return found;
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

std::vector<std::string> linear_schemes() {
  std::vector<std::string> names;
  for (const SchemeEntry& entry : scheme_table()) {
    if (entry.kernel == SchemeKernel::kNone) continue;
    for (const std::string_view name : entry.names)
      if (!name.empty()) names.emplace_back(name);
    if (!entry.kernels_name.empty()) names.emplace_back(entry.kernels_name);
    if (entry.group_size == 0) continue;
    for (const int group : scheme_group_sizes()) names.push_back(fmt::format("{}:{}", entry.names[0], group));
  }
  return names;
}

std::vector<KernelVerdict> explain_linear(int64_t m, int64_t n, int64_t k, std::string_view scheme, Isa isa) {
  const NamedScheme found = scheme_with_kernel(scheme);
  const SchemeEntry& entry = *found.entry;
  const int group = found.group_size > 0 ? found.group_size : entry.group_size;
  switch (entry.kernel) {
    case SchemeKernel::kFp32Linear:
      return explain_choice(fp32_linear_kernels(), Fp32LinearProblem{m, n, k}, isa);
    case SchemeKernel::kBf16Linear:
      return explain_choice(bf16_linear_kernels(), Bf16LinearProblem{m, n, k}, isa);
    case SchemeKernel::kInt8Linear:
      return explain_choice(int8_linear_kernels(), Int8LinearProblem{m, n, k, entry.weight_bits}, isa);
    case SchemeKernel::kInt8WeightOnlyLinear:
      return explain_choice(int8_weight_only_kernels(), Int8WeightOnlyProblem{m, n, k}, isa);
    case SchemeKernel::kInt4WeightOnlyLinear:
      return explain_choice(int4_weight_only_kernels(), Int4WeightOnlyProblem{m, n, k, group}, isa);
    case SchemeKernel::kInt4DynamicLinear:
      return explain_choice(int4_dynamic_kernels(), Int4DynamicProblem{m, n, k, group}, isa);
    case SchemeKernel::kFp8Linear:
      return explain_choice(fp8_linear_kernels(), Fp8LinearProblem{m, n, k}, isa);
    case SchemeKernel::kFp8DynamicLinear:
      return explain_choice(fp8_linear_kernels(), Fp8LinearProblem{m, n, k, Fp8Activations::kDynamicE4m3},
                            isa);
    case SchemeKernel::kInt8Conv:
      return explain_choice(int8_conv_kernels(), linear_as_conv(m, n, k, entry), isa);
    case SchemeKernel::kNone:
      break;
  }
  return {};  // not reached: scheme_with_kernel() refuses these
}

}  // namespace halftone::kernels
