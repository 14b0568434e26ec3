// Quantize, dequantize, halftone::int8_add, int8_mul and int8_lookup on kernels/quantized_ops.
#include <algorithm>

#include "compiler/executor/emit/emit_int8.h"
#include "kernels/quantized_ops/quantized_images.h"
#include "quant/static_int8/layout.h"

namespace halftone::compiler {

namespace {

using kernels::QuantizedOpsKernel;
using kernels::QuantParams;
using kernels::QuantTarget;

bool is_bytes(const Slot* slot) {
  return slot != nullptr && (slot->dtype() == at::kByte || slot->dtype() == at::kChar);
}

bool is_dense(const Slot& slot) {
  return slot.meta.is_non_overlapping_and_dense();
}

bool reads_images(const Node& node) {
  const std::string_view target = node.target();
  return target == "halftone::int8_conv" || target == "halftone::int8_cat" ||
         target == "halftone::int8_interpolate" || target.ends_with("_pool");
}

/// Whether a result of the model would come out with other strides than the graph says.
bool lies_otherwise(const Value* value, const Slot& as, const Planner& planner) {
  const auto& users = value->users();
  const bool returned =
      std::any_of(users.begin(), users.end(), [](const Node* user) { return user->is("return"); });
  if (!returned || !value->meta() || value->meta()->strides.empty()) return false;
  const std::vector<int64_t> wanted = planner.dense_strides_of(value);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (as.sizes()[i] != 1 && as.strides()[i] != wanted[i]) return true;
  }
  return false;
}

class Int8QuantizeStep final : public Step {
 public:
  Operand x, y;
  int64_t count = 0;
  QuantTarget target;
  kernels::QuantizeImages images;  ///< of images that are turned around on the way; batch 0: none
  const QuantizedOpsKernel& chosen = kernels::choose_quantized_ops();

  void run(Frame& frame) const override {
    if (images.batch == 0)
      return kernels::quantize_all(chosen, frame.at<const float>(x), frame.at<uint8_t>(y), count, target,
                                   *frame.parallel_for);
    kernels::QuantizeImages call = images;
    call.x = frame.at<const float>(x);
    call.y = frame.at<uint8_t>(y);
    kernels::quantize_to_channels_last(chosen, call, target, *frame.parallel_for);
  }
  std::string kernel() const override { return chosen.name; }
};

class Int8DequantizeStep final : public Step {
 public:
  Operand x, y;
  int64_t count = 0;
  QuantParams params;
  bool is_signed = false;
  const QuantizedOpsKernel& chosen = kernels::choose_quantized_ops();

  void run(Frame& frame) const override {
    kernels::dequantize_all(chosen, frame.at<const uint8_t>(x), frame.at<float>(y), count, params, is_signed,
                            *frame.parallel_for);
  }
  std::string kernel() const override { return chosen.name; }
};

class Int8LookupStep final : public Step {
 public:
  Operand x, y;
  int64_t count = 0;
  at::Tensor table;
  const QuantizedOpsKernel& chosen = kernels::choose_quantized_ops();

  void run(Frame& frame) const override {
    kernels::quantized_lookup(chosen, frame.at<const uint8_t>(x), frame.at<uint8_t>(y), count,
                              static_cast<const uint8_t*>(table.const_data_ptr()), *frame.parallel_for);
  }
  std::string kernel() const override { return chosen.name; }
};

/// a has `blocks` · `times` · `period` elements; b has `blocks` · `period`, each block used `times` times in
/// a row.
class Int8BinaryStep final : public Step {
 public:
  bool multiply = false;
  Operand a, b, y;
  QuantParams a_params, b_params;
  QuantTarget target;
  int64_t blocks = 1, times = 1, period = 0;
  const QuantizedOpsKernel& chosen = kernels::choose_quantized_ops();

  void run(Frame& frame) const override {
    kernels::QuantizedPair pair;
    pair.a = frame.at<const uint8_t>(a);
    pair.b = frame.at<const uint8_t>(b);
    pair.a_params = a_params;
    pair.b_params = b_params;
    auto* out = frame.at<uint8_t>(y);
    if (times == 1)
      return (multiply ? kernels::quantized_mul : kernels::quantized_add)(chosen, pair, out, blocks * period,
                                                                          target, *frame.parallel_for);
    const auto function = multiply ? chosen.mul : chosen.add;
    const int64_t rows = blocks * times;
    const int64_t chunk = std::clamp<int64_t>(kTaskBytes / period, 1, rows);
    const auto task = [&](int64_t index, int) {
      kernels::QuantizedPair row = pair;
      for (int64_t i = index * chunk; i < std::min(rows, (index + 1) * chunk); ++i) {
        row.a = pair.a + i * period;
        row.b = pair.b + i / times * period;
        function(row, out + i * period, period, target);
      }
    };
    frame.parallel_for->run((rows + chunk - 1) / chunk, task);
  }
  std::string kernel() const override { return chosen.name; }

 private:
  static constexpr int64_t kTaskBytes = 32 << 10;
};

/// b with as many dimensions as a has.
Slot with_rank_of(const Slot& b, const Slot& a) {
  at::Tensor meta = b.meta;
  while (meta.dim() < a.meta.dim()) meta = meta.unsqueeze(0);
  return {b.buffer, meta};
}

/// Whether b is [n, c, 1, …] or [1, c, 1, …] beside a [n, c, …] of images.
bool repeats_over_pixels(const Slot& b, const Slot& a) {
  if (a.meta.dim() < 3 || b.meta.dim() != a.meta.dim() || b.sizes()[1] != a.sizes()[1]) return false;
  if (b.sizes()[0] != a.sizes()[0] && b.sizes()[0] != 1) return false;
  return std::all_of(b.sizes().begin() + 2, b.sizes().end(), [](int64_t size) { return size == 1; });
}

}  // namespace

std::unique_ptr<Step> emit_int8_quantize(const Node& node, Planner& planner, std::string& reason) {
  const Slot* given = planner.tensor(node, "x");
  if (!given || given->dtype() != at::kFloat || given->meta.dim() == 0) {
    reason = "not a float32 tensor";
    return nullptr;
  }
  const Slot x = *given;
  auto step = std::make_unique<Int8QuantizeStep>();
  const c10::ScalarType dtype = planner.constant(node, "dtype").toScalarType();
  step->target.is_signed = dtype == at::kChar;
  step->target.params = {static_cast<float>(planner.constant(node, "scale").toDouble()),
                         static_cast<int32_t>(planner.constant(node, "zero_point").toInt())};
  step->target.lo = static_cast<int32_t>(planner.constant(node, "quant_min").toInt());
  step->target.hi = static_cast<int32_t>(planner.constant(node, "quant_max").toInt());
  step->count = x.numel();
  const auto& users = node.output()->users();
  const bool images =
      x.meta.dim() >= 3 && x.meta.dim() <= 5 && dtype == at::kByte &&
      std::any_of(users.begin(), users.end(), [](const Node* user) { return reads_images(*user); });
  if (images && x.meta.is_contiguous()) {
    step->images = {.y_stride = x.sizes()[1],
                    .batch = x.sizes()[0],
                    .channels = x.sizes()[1],
                    .pixels = x.numel() == 0 ? 0 : x.numel() / x.sizes()[0] / x.sizes()[1]};
    step->x = x.operand();
    step->y = planner.define_strided(node.output(), dtype, x.sizes(), dense_channels_last(x.sizes()));
  } else if (is_dense(x)) {
    step->x = x.operand();
    step->y = planner.define_strided(node.output(), dtype, x.sizes(), x.strides());
  } else {
    reason = "memory with holes";
    return nullptr;
  }
  if (x.numel() == 0) return std::make_unique<NothingStep>();
  return step;
}

std::unique_ptr<Step> emit_int8_dequantize(const Node& node, Planner& planner, std::string& reason) {
  const Slot* x = planner.tensor(node, "q");
  if (!is_bytes(x) || !is_dense(*x)) {
    reason = "not dense bytes";
    return nullptr;
  }
  if (lies_otherwise(node.output(), *x, planner)) {
    reason = "the result shall lie otherwise than the integers do";
    return nullptr;
  }
  const int64_t zero_point = planner.constant(node, "zero_point").toInt();
  if (zero_point < -128 || zero_point > 255) {
    reason = "a zero point that is no byte";
    return nullptr;
  }
  const Slot q = *x;
  auto step = std::make_unique<Int8DequantizeStep>();
  step->params = {static_cast<float>(planner.constant(node, "scale").toDouble()),
                  static_cast<int32_t>(zero_point)};
  step->is_signed = q.dtype() == at::kChar;
  step->count = q.numel();
  step->x = q.operand();
  step->y = planner.define_strided(node.output(), at::kFloat, q.sizes(), q.strides());
  return step;
}

std::unique_ptr<Step> emit_int8_lookup(const Node& node, Planner& planner, std::string& reason) {
  const Slot* x = planner.tensor(node, "x");
  const at::Tensor table = planner.weight(*planner.tensor(node, "table"));
  if (!is_bytes(x) || !is_dense(*x) || !table.defined()) {
    reason = "not dense bytes with a constant table";
    return nullptr;
  }
  const Slot input = *x;
  auto step = std::make_unique<Int8LookupStep>();
  step->table = table.contiguous();
  step->count = input.numel();
  step->x = input.operand();
  step->y = planner.define_strided(node.output(), table.scalar_type(), input.sizes(), input.strides());
  planner.may_overwrite(step->y, step->x);
  return step;
}

std::unique_ptr<Step> emit_int8_binary(const Node& node, Planner& planner, std::string& reason) {
  const Slot *left = planner.tensor(node, "a"), *right = planner.tensor(node, "b");
  if (!left || !right || left->dtype() != at::kByte || right->dtype() != at::kByte) {
    reason = "not uint8";
    return nullptr;
  }
  auto step = std::make_unique<Int8BinaryStep>();
  const char* name = node.target().c_str();
  const auto params = [&](const char* scale, const char* zero_point) {
    return static_int8::to_params(name, planner.constant(node, scale).toDouble(),
                                  planner.constant(node, zero_point).toInt());
  };
  step->multiply = node.is("halftone::int8_mul");
  step->a_params = params("a_scale", "a_zero_point");
  step->b_params = params("b_scale", "b_zero_point");
  step->target = static_int8::to_target(
      name, planner.constant(node, "out_scale").toDouble(), planner.constant(node, "out_zero_point").toInt(),
      planner.constant(node, "out_min").toInt(), planner.constant(node, "out_max").toInt());
  // Both operations commute: the operand as large as the result comes first.
  Slot a = *left, b = *right;
  const std::vector<int64_t> sizes = planner.sizes_of(node.output());
  if (a.sizes() != sizes) {
    std::swap(a, b);
    std::swap(step->a_params, step->b_params);
  }
  b = with_rank_of(b, a);
  const bool whole = a.sizes() == sizes && b.sizes() == sizes;
  if (a.sizes() != sizes || a.numel() == 0 || (!whole && !repeats_over_pixels(b, a))) {
    reason = "broadcast in a way that has no kernel";
    return nullptr;
  }
  // Images have their channels last; all else lies in order. An operand that does not is copied first.
  const bool images = a.meta.dim() >= 3 && (!whole || a.meta.stride(1) == 1 || b.meta.stride(1) == 1);
  const auto rows = [&](const Slot& slot) {
    const Rows found = planner.rows(images ? channels_at_the_end(slot) : slot, node);
    return found.stride == found.k || found.rows <= 1 ? found.operand : Operand{};
  };
  if (a.meta.dim() == 0) {
    reason = "a single element";
    return nullptr;
  }
  step->a = rows(a);
  step->b = rows(b);
  if (!step->a.valid() || !step->b.valid()) {
    reason = "a slice of something larger";
    return nullptr;
  }
  step->period = whole ? a.numel() : a.sizes()[1];
  step->blocks = whole ? 1 : b.sizes()[0];
  step->times = whole ? 1 : a.numel() / step->blocks / step->period;
  step->y = images ? planner.define_strided(node.output(), at::kByte, sizes, dense_channels_last(sizes))
                   : planner.define(node.output(), at::kByte, sizes);
  if (step->a.buffer != step->b.buffer) planner.may_overwrite(step->y, step->a);
  if (whole && step->a.buffer != step->b.buffer) planner.may_overwrite(step->y, step->b);
  return step;
}

}  // namespace halftone::compiler
