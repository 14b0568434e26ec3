// halftone::int8_embedding, halftone::int4_embedding and halftone::bf16_embedding
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <fmt/ranges.h>
#include <torch/library.h>

#include "base/errors.h"
#include "graph/aten/aten_parallel_for.h"
#include "graph/aten/dtype_text.h"
#include "kernels/embedding_rows/embedding_rows.h"
#include "quant/weight/linear_call.h"
#include "quant/weight/ops.h"

namespace halftone {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using OptionalType = std::optional<c10::ScalarType>;
constexpr const char* kInt8Name = "halftone::int8_embedding";
constexpr const char* kInt4Name = "halftone::int4_embedding";
constexpr const char* kBf16Name = "halftone::bf16_embedding";

struct Table {
  const char* name;
  const at::Tensor& weight;
  const at::Tensor& scale;
  at::Tensor zero_point;  // may be undefined
  kernels::EmbeddingFormat format;
  int64_t width;
  int group;
};

c10::ScalarType result_type(const char* name, OptionalType dtype) {
  const c10::ScalarType type = dtype.value_or(at::kFloat);
  if (type != at::kFloat && type != at::kBFloat16 && type != at::kHalf && type != at::kDouble) {
    fail(ErrorCode::kInvalidArgument, "{}: dtype must be floating-point, not {}", name, dtype_text(type));
  }
  return type;
}

void check_indices(const char* name, const at::Tensor& indices) {
  if ((indices.is_cpu() || indices.is_meta()) &&
      (indices.scalar_type() == at::kLong || indices.scalar_type() == at::kInt))
    return;
  fail(ErrorCode::kInvalidArgument, "{}: indices must be int64 or int32 on the CPU, not {} on {}", name,
       dtype_text(indices.scalar_type()), indices.device().str());
}

at::Tensor look_up(const at::Tensor& indices, const Table& table, OptionalType dtype) {
  const c10::ScalarType type = result_type(table.name, dtype);
  check_indices(table.name, indices);
  const kernels::EmbeddingRowsProblem problem{indices.numel(), table.weight.size(0), table.width,
                                              table.format, table.group};
  const at::Tensor index = indices.contiguous(), weight = table.weight.contiguous(),
                   scale = table.scale.contiguous();
  const at::Tensor zeros = table.zero_point.defined() ? table.zero_point.contiguous() : at::Tensor();
  std::vector<int64_t> sizes = indices.sizes().vec();
  sizes.push_back(table.width);
  const bool halves = type == at::kBFloat16;
  const at::Tensor out = at::empty(sizes, halves ? at::kBFloat16 : at::kFloat);
  kernels::EmbeddingRowsArgs args;
  if (index.scalar_type() == at::kLong) {
    args.index64 = index.const_data_ptr<int64_t>();
  } else {
    args.index32 = index.const_data_ptr<int32_t>();
  }
  args.table = weight.const_data_ptr();
  args.row_stride = problem.row_bytes();
  args.scale = scale.const_data_ptr<float>();
  args.zero_point = zeros.defined() ? zeros.const_data_ptr<int8_t>() : nullptr;
  args.type = halves ? kernels::OutputType::kBFloat16 : kernels::OutputType::kFloat32;
  args.out = out.mutable_data_ptr();
  args.out_stride = table.width;
  if (out.numel() > 0) {
    AtenParallelFor parallel_for;
    kernels::embedding_rows(kernels::choose_embedding_rows(problem), problem, args, parallel_for);
  }
  return out.to(type);
}

at::Tensor meta_look_up(const char* name, const at::Tensor& indices, const c10::SymInt& width,
                        OptionalType dtype) {
  check_indices(name, indices);
  c10::SymDimVector sizes(indices.sym_sizes().begin(), indices.sym_sizes().end());
  sizes.push_back(width);
  return at::empty_symint(sizes, indices.options().dtype(result_type(name, dtype)));
}

void check_int8(const at::Tensor& weight, const at::Tensor& scale) {
  check_matrix(kInt8Name, weight, at::kChar);
  if (!has_symbols(weight)) check_part(kInt8Name, "scale", scale, at::kFloat, {weight.size(0)});
}

void check_int4(const at::Tensor& weight, const at::Tensor& scale, const OptionalTensor& zero_point,
                int64_t group_size, int64_t in_features) {
  check_matrix(kInt4Name, weight, at::kByte);
  const c10::SymInt inputs = ops::int4_inputs(kInt4Name, weight, in_features);
  if (has_symbols(weight)) return;
  const int64_t rows = weight.size(0), width = inputs.expect_int();
  if (group_size < 1 || group_size > 256)
    fail(ErrorCode::kInvalidArgument, "{}: group size {} is not from 1 to 256", kInt4Name, group_size);
  const int64_t groups = width == 0 ? 0 : (width - 1) / group_size + 1;
  check_part(kInt4Name, "scale", scale, at::kFloat, {rows, groups});
  if (zero_point && zero_point->defined())
    check_part(kInt4Name, "zero_point", *zero_point, at::kChar, {rows, groups});
}

at::Tensor int8_cpu(const at::Tensor& indices, const at::Tensor& weight, const at::Tensor& scale,
                    OptionalType dtype) {
  check_int8(weight, scale);
  return look_up(indices, {kInt8Name, weight, scale, {}, kernels::EmbeddingFormat::kInt8, weight.size(1), 0},
                 dtype);
}

at::Tensor int8_meta(const at::Tensor& indices, const at::Tensor& weight, const at::Tensor& scale,
                     OptionalType dtype) {
  check_int8(weight, scale);
  return meta_look_up(kInt8Name, indices, weight.sym_size(1), dtype);
}

at::Tensor int4_cpu(const at::Tensor& indices, const at::Tensor& weight, const at::Tensor& scale,
                    const OptionalTensor& zero_point, int64_t group_size, OptionalType dtype,
                    int64_t in_features) {
  check_int4(weight, scale, zero_point, group_size, in_features);
  const int64_t width = ops::int4_inputs(kInt4Name, weight, in_features).expect_int();
  const at::Tensor zeros = zero_point.value_or(at::Tensor());
  return look_up(
      indices,
      {kInt4Name, weight, scale, zeros, kernels::EmbeddingFormat::kInt4, width, static_cast<int>(group_size)},
      dtype);
}

at::Tensor int4_meta(const at::Tensor& indices, const at::Tensor& weight, const at::Tensor& scale,
                     const OptionalTensor& zero_point, int64_t group_size, OptionalType dtype,
                     int64_t in_features) {
  check_int4(weight, scale, zero_point, group_size, in_features);
  return meta_look_up(kInt4Name, indices, ops::int4_inputs(kInt4Name, weight, in_features), dtype);
}

at::Tensor bf16_cpu(const at::Tensor& indices, const at::Tensor& weight, OptionalType dtype) {
  check_matrix(kBf16Name, weight, at::kBFloat16);
  const c10::ScalarType type = result_type(kBf16Name, dtype);
  check_indices(kBf16Name, indices);
  std::vector<int64_t> sizes = indices.sizes().vec();
  sizes.push_back(weight.size(1));
  const at::Tensor flat = indices.reshape({-1});
  if (flat.numel() > 0) {
    const int64_t least = flat.min().item<int64_t>(), most = flat.max().item<int64_t>();
    if (least < 0 || most >= weight.size(0)) {
      fail(ErrorCode::kInvalidArgument, "{}: index {} is outside a table of {} rows", kBf16Name,
           least < 0 ? least : most, weight.size(0));
    }
  }
  return at::index_select(weight, 0, flat).to(type).view(sizes);
}

at::Tensor bf16_meta(const at::Tensor& indices, const at::Tensor& weight, OptionalType dtype) {
  check_matrix(kBf16Name, weight, at::kBFloat16);
  return meta_look_up(kBf16Name, indices, weight.sym_size(1), dtype);
}

void refuse_gradient(const char* name, const at::Tensor& part) {
  if (!at::GradMode::is_enabled() || !part.requires_grad()) return;
  fail(ErrorCode::kInvalidArgument,
       "{}: a part of the quantized table requires a gradient; they are constants", name);
}

at::Tensor int8_autograd(const at::Tensor& indices, const at::Tensor& weight, const at::Tensor& scale,
                         OptionalType dtype) {
  refuse_gradient(kInt8Name, scale);
  const at::AutoDispatchBelowADInplaceOrView below;
  return ops::int8_embedding(indices, weight, scale, dtype);
}

at::Tensor int4_autograd(const at::Tensor& indices, const at::Tensor& weight, const at::Tensor& scale,
                         const OptionalTensor& zero_point, int64_t group_size, OptionalType dtype,
                         int64_t in_features) {
  refuse_gradient(kInt4Name, scale);
  const at::AutoDispatchBelowADInplaceOrView below;
  return ops::int4_embedding(indices, weight, scale, zero_point, group_size, dtype, in_features);
}

at::Tensor bf16_autograd(const at::Tensor& indices, const at::Tensor& weight, OptionalType dtype) {
  refuse_gradient(kBf16Name, weight);
  const at::AutoDispatchBelowADInplaceOrView below;
  return ops::bf16_embedding(indices, weight, dtype);
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def("int8_embedding(Tensor indices, Tensor weight, Tensor scale, *, ScalarType? dtype=None) -> Tensor");
  m.def(
      "int4_embedding(Tensor indices, Tensor weight, Tensor scale, Tensor? zero_point=None, *, int "
      "group_size=32, "
      "ScalarType? dtype=None, int in_features=0) -> Tensor");
  m.def("bf16_embedding(Tensor indices, Tensor weight, *, ScalarType? dtype=None) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("int8_embedding", int8_cpu);
  m.impl("int4_embedding", int4_cpu);
  m.impl("bf16_embedding", bf16_cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("int8_embedding", int8_meta);
  m.impl("int4_embedding", int4_meta);
  m.impl("bf16_embedding", bf16_meta);
}
TORCH_LIBRARY_IMPL(halftone, Autograd, m) {
  m.impl("int8_embedding", int8_autograd);
  m.impl("int4_embedding", int4_autograd);
  m.impl("bf16_embedding", bf16_autograd);
}

}  // namespace

at::Tensor ops::int8_embedding(const at::Tensor& indices, const at::Tensor& weight, const at::Tensor& scale,
                               OptionalType dtype) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(kInt8Name, "").typed<decltype(int8_cpu)>();
  return op.call(indices, weight, scale, dtype);
}

at::Tensor ops::int4_embedding(const at::Tensor& indices, const at::Tensor& weight, const at::Tensor& scale,
                               const OptionalTensor& zero_point, int64_t group_size, OptionalType dtype,
                               int64_t in_features) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(kInt4Name, "").typed<decltype(int4_cpu)>();
  return op.call(indices, weight, scale, zero_point, group_size, dtype, in_features);
}

at::Tensor ops::bf16_embedding(const at::Tensor& indices, const at::Tensor& weight, OptionalType dtype) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(kBf16Name, "").typed<decltype(bf16_cpu)>();
  return op.call(indices, weight, dtype);
}

}  // namespace halftone
