// Pooling, interpolation and cat of static int8 graphs on kernels/quantized_ops.
#include "compiler/executor/emit/emit_int8.h"
#include "quant/static_int8/channels_last_call.h"
#include "quant/static_int8/layout.h"

namespace halftone::compiler {

namespace {

using static_int8::ChannelsLastCall;

class Int8ImagesStep final : public Step {
 public:
  ChannelsLastCall call;
  Operand x, y;

  void run(Frame& frame) const override {
    call.run(frame.at<const uint8_t>(x), frame.at<uint8_t>(y), *frame.parallel_for);
  }
  std::string kernel() const override { return kernels::choose_quantized_ops().name; }
};

/// The parts, each to its place.
class Int8CatStep final : public Step {
 public:
  struct Part {
    Operand x;
    kernels::RequantizeRows rows;  ///< y: null
    int64_t place = 0;
    kernels::QuantParams params;
  };
  std::vector<Part> parts;
  kernels::QuantTarget target;
  Operand y;

  void run(Frame& frame) const override {
    for (const Part& part : parts) {
      kernels::RequantizeRows rows = part.rows;
      rows.x = frame.at<const uint8_t>(part.x);
      rows.y = frame.at<uint8_t>(y) + part.place;
      kernels::requantize_rows(kernels::choose_quantized_ops(), rows, part.params, target,
                               *frame.parallel_for);
    }
  }
  std::string kernel() const override { return kernels::choose_quantized_ops().name; }
};

ChannelsLastCall image_call(const Node& node, Planner& planner, c10::IntArrayRef sizes) {
  const auto numbers = [&](std::string_view name) { return planner.constant(node, name).toIntVector(); };
  const auto flag = [&](std::string_view name) { return planner.constant(node, name).toBool(); };
  if (node.is("halftone::int8_adaptive_avg_pool"))
    return static_int8::adaptive_pool_call(sizes, numbers("output_size"));
  if (node.is("halftone::int8_interpolate"))
    return static_int8::interpolate_call(sizes, numbers("output_size"),
                                         planner.constant(node, "scales").toDoubleVector(),
                                         planner.constant(node, "mode").toStringRef());
  const std::vector<int64_t> kernel = numbers("kernel"), stride = numbers("stride"),
                             padding = numbers("padding");
  if (node.is("halftone::int8_max_pool"))
    return static_int8::max_pool_call(sizes,
                                      {kernel, stride, padding, numbers("dilation"), flag("ceil_mode")});
  return static_int8::average_pool_call(
      sizes, {kernel, stride, padding, std::vector<int64_t>(kernel.size(), 1), flag("ceil_mode")},
      {flag("count_include_pad"), planner.constant(node, "divisor_override").toInt()});
}

kernels::QuantTarget target_of(const Node& node, Planner& planner) {
  return static_int8::to_target(node.target().c_str(), planner.constant(node, "out_scale").toDouble(),
                                planner.constant(node, "out_zero_point").toInt(),
                                planner.constant(node, "out_min").toInt(),
                                planner.constant(node, "out_max").toInt());
}

}  // namespace

std::unique_ptr<Step> emit_int8_channels_last(const Node& node, Planner& planner, std::string& reason) {
  if (!is_channels_last_bytes(planner.tensor(node, "x"))) {
    reason = "not a batch of uint8 images";
    return nullptr;
  }
  const Slot x = *planner.tensor(node, "x");
  auto step = std::make_unique<Int8ImagesStep>();
  step->call = image_call(node, planner, x.sizes());
  if (!node.is("halftone::int8_max_pool")) {
    step->call.images.from =
        static_int8::to_params(node.target().c_str(), planner.constant(node, "x_scale").toDouble(),
                               planner.constant(node, "x_zero_point").toInt());
    step->call.images.to = target_of(node, planner);
  }
  const Rows rows = planner.rows(channels_at_the_end(x), node);
  step->x = rows.operand;
  step->call.images.x_stride = rows.stride;
  const std::vector<int64_t>& sizes = step->call.result;
  step->y = planner.define_strided(node.output(), at::kByte, sizes, dense_channels_last(sizes));
  if (x.numel() == 0) return std::make_unique<NothingStep>();
  return step;
}

std::unique_ptr<Step> emit_int8_cat(const Node& node, Planner& planner, std::string& reason) {
  const std::vector<Slot> parts = planner.tensor_list(node, "tensors");
  const std::vector<int64_t> sizes = planner.sizes_of(node.output());
  const auto rank = static_cast<int64_t>(sizes.size());
  int64_t dim = planner.constant(node, "dim").toInt();
  if (dim < 0) dim += rank;
  const bool images = !parts.empty() && static_int8::wants_channels_last(parts[0].meta);
  auto step = std::make_unique<Int8CatStep>();
  step->target = target_of(node, planner);
  const std::vector<double> scales = planner.constant(node, "scales").toDoubleVector();
  const std::vector<int64_t> zero_points = planner.constant(node, "zero_points").toIntVector();
  // In the order of memory: [batch, …, channels], or as it is.
  const int64_t along = !images || dim == 0 ? dim : dim == 1 ? rank - 1 : dim - 1;
  int64_t place = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Slot part = images ? channels_at_the_end(parts[i]) : parts[i];
    if (part.dtype() != at::kByte || part.meta.dim() != rank || part.numel() == 0) {
      reason = "parts that are empty or not uint8";
      return nullptr;
    }
    const Rows rows = planner.rows(part, node);
    if (rows.stride != rows.k && along + 1 < rank) {
      reason = "a slice of something larger";
      return nullptr;
    }
    const int64_t inner = c10::multiply_integers(part.sizes().begin() + along + 1, part.sizes().end());
    const int64_t count = part.sizes()[static_cast<size_t>(along)] * inner;
    Int8CatStep::Part copy{rows.operand,
                           {},
                           place,
                           static_int8::to_params("halftone::int8_cat", scales.at(i), zero_points.at(i))};
    copy.rows.rows = part.numel() / count;
    copy.rows.count = count;
    copy.rows.x_stride = along + 1 == rank ? rows.stride : count;
    place += count;
    step->parts.push_back(copy);
  }
  for (Int8CatStep::Part& part : step->parts) part.rows.y_stride = place;
  step->y = images ? planner.define_strided(node.output(), at::kByte, sizes, dense_channels_last(sizes))
                   : planner.define(node.output(), at::kByte, sizes);
  return step;
}

}  // namespace halftone::compiler
