// halftone::fake_quantize_rows: what the dynamic schemes do to activations. The integers are those of the
// kernels' own first step (quantize_rows.h).
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "base/errors.h"
#include "graph/aten/aten_parallel_for.h"
#include "halftone/quant/qat.h"
#include "kernels/common/kernel_table.h"
#include "kernels/quantize_rows/quantize_rows.h"
#include "quant/fake_quantize/operators.h"

namespace halftone {
namespace {

constexpr const char* kRowsName = "halftone::fake_quantize_rows";

void check_rows(const at::Tensor& x, int64_t group_size) {
  if (!x.is_floating_point() || x.dim() == 0)
    fail(ErrorCode::kInvalidArgument, "{}: x must be floating-point, with a dimension", kRowsName);
  if (group_size < 0) fail(ErrorCode::kInvalidArgument, "{}: a group size of {}", kRowsName, group_size);
}

at::Tensor rows_cpu(const at::Tensor& x, bool symmetric, int64_t group_size) {
  check_rows(x, group_size);
  const at::Tensor rows = x.detach().to(at::kFloat).contiguous();
  at::Tensor y = at::empty_like(rows);
  const int64_t k = rows.size(-1), m = k == 0 ? 0 : rows.numel() / k;
  const int64_t width = group_size == 0 ? k : group_size;
  const auto format = symmetric ? kernels::RowFormat::kS8 : kernels::RowFormat::kU8;
  const auto& kernel = kernels::choose_kernel(kernels::quantize_rows_kernels(),
                                              kernels::QuantizeRowsProblem{m, k}, active_isa());
  const float* from = rows.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  AtenParallelFor parallel_for;
  parallel_for.run(m, [&](int64_t row, int) {
    std::vector<uint8_t> bytes(static_cast<size_t>(std::min(width, k)));
    for (int64_t first = row * k; first < (row + 1) * k; first += width) {
      const int64_t count = std::min(width, (row + 1) * k - first);
      const kernels::RowScale scale = kernel.row(from + first, count, format, bytes.data());
      for (int64_t i = 0; i < count; ++i) {
        const auto byte = bytes[static_cast<size_t>(i)];
        const int q = symmetric ? static_cast<int8_t>(byte) : byte - scale.zero_point;
        to[first + i] = scale.scale * static_cast<float>(q);
      }
    }
  });
  return y.to(x.scalar_type());
}

at::Tensor rows_meta(const at::Tensor& x, bool, int64_t group_size) {
  check_rows(x, group_size);
  return at::empty_symint(x.sym_sizes(), x.options());
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Straight through: the range is that of the row itself, so nothing is clipped.
class FakeRowsFunction : public torch::autograd::Function<FakeRowsFunction> {
 public:
  static at::Tensor forward(AutogradContext*, const at::Tensor& x, bool symmetric, int64_t group_size) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return ops::fake_quantize_rows(x, symmetric, group_size);
  }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {gradients.at(0), at::Tensor(), at::Tensor()};
  }
};

at::Tensor rows_autograd(const at::Tensor& x, bool symmetric, int64_t group_size) {
  if (at::GradMode::is_enabled() && x.requires_grad())
    return FakeRowsFunction::apply(x, symmetric, group_size);
  const at::AutoDispatchBelowADInplaceOrView below;
  return ops::fake_quantize_rows(x, symmetric, group_size);
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def("fake_quantize_rows(Tensor x, *, bool symmetric=False, int group_size=0) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("fake_quantize_rows", rows_cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("fake_quantize_rows", rows_meta);
}
TORCH_LIBRARY_IMPL(halftone, Autograd, m) {
  m.impl("fake_quantize_rows", rows_autograd);
}

}  // namespace

at::Tensor ops::fake_quantize_rows(const at::Tensor& x, bool symmetric, int64_t group_size) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(kRowsName, "").typed<decltype(rows_cpu)>();
  return op.call(x, symmetric, group_size);
}

at::Tensor fake_quantize_rows(const at::Tensor& x, bool symmetric, int64_t group_size) {
  return ops::fake_quantize_rows(x, symmetric, group_size);
}

}  // namespace halftone
