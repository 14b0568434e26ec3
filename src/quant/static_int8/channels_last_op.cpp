// halftone::int8_max_pool, int8_avg_pool, int8_adaptive_avg_pool and int8_interpolate
#include <torch/library.h>

#include "graph/aten/aten_parallel_for.h"
#include "quant/static_int8/channels_last_call.h"
#include "quant/static_int8/layout.h"
#include "quant/static_int8/operators.h"

namespace halftone::static_int8 {
namespace {

at::Tensor run_image_call(const char* name, const ChannelsLastCall& call, const at::Tensor& x) {
  check_images(name, "x", x);
  const at::Tensor out = empty_channels_last(call.result, x.options());
  const at::Tensor rows = channels_last_rows(x);
  AtenParallelFor parallel_for;
  call.run(rows.const_data_ptr<uint8_t>(), out.data_ptr<uint8_t>(), parallel_for);
  return out;
}

/// What run_image_call gives, without data.
at::Tensor meta_image_call(const char* name, const ChannelsLastCall& call, const at::Tensor& x) {
  check_images(name, "x", x);
  return empty_channels_last(call.result, x.options());
}

at::Tensor max_pool_cpu(const at::Tensor& x, at::IntArrayRef kernel, at::IntArrayRef stride,
                        at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  return run_image_call("halftone::int8_max_pool",
                        max_pool_call(x.sizes(), {kernel, stride, padding, dilation, ceil_mode}), x);
}

at::Tensor max_pool_meta(const at::Tensor& x, at::IntArrayRef kernel, at::IntArrayRef stride,
                         at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  return meta_image_call("halftone::int8_max_pool",
                         max_pool_call(x.sizes(), {kernel, stride, padding, dilation, ceil_mode}), x);
}

ChannelsLastCall average_call(const at::Tensor& x, at::IntArrayRef kernel, at::IntArrayRef stride,
                              at::IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                              int64_t divisor_override) {
  const std::vector<int64_t> ones(kernel.size(), 1);
  return average_pool_call(x.sizes(), {kernel, stride, padding, ones, ceil_mode},
                           {count_include_pad, divisor_override});
}

at::Tensor avg_pool_cpu(const at::Tensor& x, at::IntArrayRef kernel, at::IntArrayRef stride,
                        at::IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                        int64_t divisor_override, double x_scale, int64_t x_zero_point, double out_scale,
                        int64_t out_zero_point, int64_t out_min, int64_t out_max) {
  constexpr const char* kName = "halftone::int8_avg_pool";
  ChannelsLastCall call =
      average_call(x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override);
  call.images.from = to_params(kName, x_scale, x_zero_point);
  call.images.to = to_target(kName, out_scale, out_zero_point, out_min, out_max);
  return run_image_call(kName, call, x);
}

at::Tensor avg_pool_meta(const at::Tensor& x, at::IntArrayRef kernel, at::IntArrayRef stride,
                         at::IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                         int64_t divisor_override, double x_scale, int64_t x_zero_point, double out_scale,
                         int64_t out_zero_point, int64_t out_min, int64_t out_max) {
  constexpr const char* kName = "halftone::int8_avg_pool";
  to_params(kName, x_scale, x_zero_point);
  to_target(kName, out_scale, out_zero_point, out_min, out_max);
  return meta_image_call(
      kName, average_call(x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override), x);
}

at::Tensor adaptive_cpu(const at::Tensor& x, at::IntArrayRef output_size, double x_scale,
                        int64_t x_zero_point, double out_scale, int64_t out_zero_point, int64_t out_min,
                        int64_t out_max) {
  constexpr const char* kName = "halftone::int8_adaptive_avg_pool";
  ChannelsLastCall call = adaptive_pool_call(x.sizes(), output_size);
  call.images.from = to_params(kName, x_scale, x_zero_point);
  call.images.to = to_target(kName, out_scale, out_zero_point, out_min, out_max);
  return run_image_call(kName, call, x);
}

at::Tensor adaptive_meta(const at::Tensor& x, at::IntArrayRef output_size, double x_scale,
                         int64_t x_zero_point, double out_scale, int64_t out_zero_point, int64_t out_min,
                         int64_t out_max) {
  constexpr const char* kName = "halftone::int8_adaptive_avg_pool";
  to_params(kName, x_scale, x_zero_point);
  to_target(kName, out_scale, out_zero_point, out_min, out_max);
  return meta_image_call(kName, adaptive_pool_call(x.sizes(), output_size), x);
}

at::Tensor interpolate_cpu(const at::Tensor& x, at::IntArrayRef output_size, at::ArrayRef<double> scales,
                           c10::string_view mode, double x_scale, int64_t x_zero_point, double out_scale,
                           int64_t out_zero_point, int64_t out_min, int64_t out_max) {
  constexpr const char* kName = "halftone::int8_interpolate";
  ChannelsLastCall call = interpolate_call(x.sizes(), output_size, scales, {mode.data(), mode.size()});
  call.images.from = to_params(kName, x_scale, x_zero_point);
  call.images.to = to_target(kName, out_scale, out_zero_point, out_min, out_max);
  return run_image_call(kName, call, x);
}

at::Tensor interpolate_meta(const at::Tensor& x, at::IntArrayRef output_size, at::ArrayRef<double> scales,
                            c10::string_view mode, double x_scale, int64_t x_zero_point, double out_scale,
                            int64_t out_zero_point, int64_t out_min, int64_t out_max) {
  constexpr const char* kName = "halftone::int8_interpolate";
  to_params(kName, x_scale, x_zero_point);
  to_target(kName, out_scale, out_zero_point, out_min, out_max);
  return meta_image_call(kName, interpolate_call(x.sizes(), output_size, scales, {mode.data(), mode.size()}),
                         x);
}

TORCH_LIBRARY_FRAGMENT(halftone, m) {
  m.def(
      "int8_max_pool(Tensor x, *, int[] kernel, int[] stride, int[] padding, int[] dilation, bool ceil_mode) "
      "-> Tensor");
  m.def(
      "int8_avg_pool(Tensor x, *, int[] kernel, int[] stride, int[] padding, bool ceil_mode, "
      "bool count_include_pad, int divisor_override=0, float x_scale, int x_zero_point, float out_scale, "
      "int out_zero_point, int out_min=0, int out_max=255) -> Tensor");
  m.def(
      "int8_adaptive_avg_pool(Tensor x, *, int[] output_size, float x_scale, int x_zero_point, "
      "float out_scale, int out_zero_point, int out_min=0, int out_max=255) -> Tensor");
  m.def(
      "int8_interpolate(Tensor x, *, int[] output_size, float[] scales, str mode, float x_scale, "
      "int x_zero_point, float out_scale, int out_zero_point, int out_min=0, int out_max=255) -> Tensor");
}
TORCH_LIBRARY_IMPL(halftone, CPU, m) {
  m.impl("int8_max_pool", max_pool_cpu);
  m.impl("int8_avg_pool", avg_pool_cpu);
  m.impl("int8_adaptive_avg_pool", adaptive_cpu);
  m.impl("int8_interpolate", interpolate_cpu);
}
TORCH_LIBRARY_IMPL(halftone, Meta, m) {
  m.impl("int8_max_pool", max_pool_meta);
  m.impl("int8_avg_pool", avg_pool_meta);
  m.impl("int8_adaptive_avg_pool", adaptive_meta);
  m.impl("int8_interpolate", interpolate_meta);
}

}  // namespace

void link_images_operators() {}

}  // namespace halftone::static_int8
