#include "kernels/catalog/catalog.h"

#include <fmt/ranges.h>

#include "kernels/elementwise/elementwise.h"
#include "kernels/embedding_rows/embedding_rows.h"
#include "kernels/fp32_linear/fp32_linear.h"
#include "kernels/fp8_linear/fp8_linear.h"
#include "kernels/int4_weight_only_linear/int4_weight_only_linear.h"
#include "kernels/int8_linear/int8_linear.h"
#include "kernels/int8_weight_only_linear/int8_weight_only_linear.h"
#include "kernels/norm/norm.h"
#include "kernels/quantize_rows/quantize_rows.h"
#include "kernels/softmax/softmax.h"

namespace halftone::kernels {
namespace {

constexpr std::string_view kSchemes[] = {"fp32",  "int8",       "int8-7bit",  "int8wo",      "fp8wo",
                                         "fp8dq", "int4wo-g32", "int4wo-g64", "int4wo-g128", "int4wo-g256"};

template <typename Kernel>
void append(std::vector<CatalogEntry>& all, std::string_view operation, std::span<const Kernel> table) {
  for (const Kernel& kernel : table) all.push_back({operation, kernel.name, kernel.isa});
}

int int4_group(std::string_view scheme) {
  return scheme == "int4wo-g32" ? 32 : scheme == "int4wo-g64" ? 64 : scheme == "int4wo-g128" ? 128 : 256;
}

}  // namespace

std::vector<CatalogEntry> kernel_catalog() {
  std::vector<CatalogEntry> all;
  append(all, "int8_linear", int8_linear_kernels());
  append(all, "int8_weight_only_linear", int8_weight_only_kernels());
  append(all, "int4_weight_only_linear", int4_weight_only_kernels());
  append(all, "fp32_linear", fp32_linear_kernels());
  append(all, "fp8_linear", fp8_linear_kernels());
  append(all, "embedding_rows", embedding_rows_kernels());
  append(all, "quantize_rows", quantize_rows_kernels());
  append(all, "norm", norm_kernels());
  append(all, "softmax", softmax_kernels());
  append(all, "elementwise", elementwise_kernels());
  return all;
}

std::span<const std::string_view> linear_schemes() {
  return kSchemes;
}

std::vector<KernelVerdict> explain_linear(int64_t m, int64_t n, int64_t k, std::string_view scheme, Isa isa) {
  if (scheme == "fp32") return explain_choice(fp32_linear_kernels(), Fp32LinearProblem{m, n, k}, isa);
  if (scheme == "int8") return explain_choice(int8_linear_kernels(), Int8LinearProblem{m, n, k, 8}, isa);
  if (scheme == "int8-7bit") return explain_choice(int8_linear_kernels(), Int8LinearProblem{m, n, k, 7}, isa);
  if (scheme == "int8wo")
    return explain_choice(int8_weight_only_kernels(), Int8WeightOnlyProblem{m, n, k}, isa);
  if (scheme == "fp8wo") return explain_choice(fp8_linear_kernels(), Fp8LinearProblem{m, n, k}, isa);
  if (scheme == "fp8dq") {
    const Fp8LinearProblem problem{m, n, k, Fp8Activations::kDynamicE4m3};
    return explain_choice(fp8_linear_kernels(), problem, isa);
  }
  for (std::string_view known : kSchemes) {
    if (known == scheme)
      return explain_choice(int4_weight_only_kernels(), Int4WeightOnlyProblem{m, n, k, int4_group(scheme)},
                            isa);
  }
  fail(ErrorCode::kInvalidArgument, "unknown scheme \"{}\"; there are {}", scheme, fmt::join(kSchemes, ", "));
}

}  // namespace halftone::kernels
