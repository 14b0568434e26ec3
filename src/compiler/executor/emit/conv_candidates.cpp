#include "compiler/executor/emit/conv_candidates.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <tuple>

#include "base/errors.h"
#include "compiler/executor/aten_step.h"
#include "compiler/executor/worker_pools.h"

namespace halftone::compiler {

namespace {

using kernels::ConvActivation;
using kernels::ConvExtent;

constexpr const char* kMkldnnConv = "mkldnn::_convolution_pointwise";

std::optional<c10::OperatorHandle> try_mkldnn(const char* name, const char* overload) {
  if (!at::globalContext().hasMKLDNN() || !at::globalContext().userEnabledMkldnn()) return std::nullopt;
  return c10::Dispatcher::singleton().findSchema({name, overload});
}

/// The activation as mkldnn's operators name it.
struct MkldnnActivation {
  const char* name = "none";
  const char* algorithm = "";
  bool bounds = false;
};

MkldnnActivation mkldnn_activation(ConvActivation kind) {
  switch (kind) {
    case ConvActivation::kNone:
      return {};
    case ConvActivation::kRelu:
      return {"relu"};
    case ConvActivation::kClamp:
      return {"hardtanh", "", true};
    case ConvActivation::kSilu:
      return {"swish"};
    case ConvActivation::kGeluErf:
      return {"gelu", "none"};
    case ConvActivation::kGeluTanh:
      return {"gelu", "tanh"};
    case ConvActivation::kSigmoid:
      return {"sigmoid"};
    case ConvActivation::kHardSigmoid:
      return {"hardsigmoid"};
    case ConvActivation::kHardSwish:
      return {"hardswish"};
  }
  fail(ErrorCode::kInternal, "an activation without a name");
}

/// The last `dims` numbers.
std::vector<int64_t> last_of(const ConvExtent& extent, size_t dims) {
  return {extent.end() - static_cast<std::ptrdiff_t>(dims), extent.end()};
}

/// In mkldnn's own layout for this shape.
at::Tensor reordered_weight(const ConvCandidate& c) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_reorder_convolution_weight", "");
  std::vector<int64_t> input = {c.shape.batch, c.shape.in_channels};
  const std::vector<int64_t> pixels = last_of(c.shape.in, c.dims);
  input.insert(input.end(), pixels.begin(), pixels.end());
  torch::jit::Stack stack = {c.weight.contiguous(),
                             last_of(c.shape.pad, c.dims),
                             last_of(c.shape.stride, c.dims),
                             last_of(c.shape.dilation, c.dims),
                             c.shape.groups,
                             input};
  op.callBoxed(stack);
  return stack.at(0).toTensor();
}

StepOperand constant_operand(c10::IValue value) {
  return {.constant = std::move(value)};
}

StepOperand slot_operand(const Slot& slot) {
  return {.kind = StepOperand::Kind::kSlot, .slot = slot};
}

/// As the operator's schema lists them; with a residual, the overload that adds one.
std::vector<StepOperand> mkldnn_operands(const ConvCandidate& c, const Slot& x, const Slot* residual) {
  const MkldnnActivation how = mkldnn_activation(c.activate.kind);
  c10::List<std::optional<at::Scalar>> scalars;
  if (how.bounds) {
    scalars.push_back(at::Scalar(c.activate.lo));
    scalars.push_back(at::Scalar(c.activate.hi));
  }
  std::vector<StepOperand> operands = {slot_operand(x)};
  if (residual) operands.push_back(slot_operand(*residual));
  operands.push_back(constant_operand(reordered_weight(c)));
  operands.push_back(constant_operand(c.bias.defined() ? c10::IValue(c.bias) : c10::IValue()));
  for (const ConvExtent& extent : {c.shape.pad, c.shape.stride, c.shape.dilation})
    operands.push_back(constant_operand(last_of(extent, c.dims)));
  operands.push_back(constant_operand(c.shape.groups));
  if (residual) {
    operands.push_back(constant_operand("add"));
    operands.push_back(constant_operand(1.0));
  }
  const bool nothing = residual && c.activate.kind == ConvActivation::kNone;
  operands.push_back(constant_operand(nothing ? c10::IValue() : c10::IValue(how.name)));
  operands.push_back(constant_operand(scalars));
  operands.push_back(constant_operand(how.algorithm));
  return operands;
}

template <typename Call>
double best_milliseconds(Call call) {
  constexpr int kCalls = 4;  // the first one warms up
  double best = 0;
  for (int i = 0; i < kCalls; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    if (i > 0) best = i == 1 ? elapsed.count() : std::min(best, elapsed.count());
  }
  return best;
}

double time_ours(const ConvCandidate& c, const kernels::Fp32ConvKernel& kernel, const at::Tensor& packed,
                 int threads) {
  const at::Tensor x = at::zeros({c.shape.batch * c.shape.in_pixels(), c.shape.in_channels}),
                   y = at::zeros({c.shape.batch * c.shape.out_pixels(), c.shape.out_channels});
  kernels::Fp32ConvArgs args;
  args.x = x.const_data_ptr<float>();
  args.x_strides = kernels::channels_last_strides(c.shape, c.shape.in_channels);
  args.weights = packed.const_data_ptr();
  args.out = y.mutable_data_ptr<float>();
  args.out_stride = args.residual_stride = c.shape.out_channels;
  args.residual = c.residual ? args.out : nullptr;
  args.activate = c.activate;
  args.workspace_bytes = kernels::fp32_conv_workspace_bytes(kernel, c.shape, threads);
  const at::Tensor workspace = at::empty({static_cast<int64_t>(args.workspace_bytes)}, at::kByte);
  args.workspace = workspace.mutable_data_ptr();
  PoolLease pool(threads);
  return best_milliseconds([&] { kernels::fp32_conv(kernel, c.shape, args, pool.parallel_for()); });
}

/// Zeros with the channels last.
at::Tensor zero_image(int64_t batch, int64_t channels, const ConvExtent& pixels, size_t dims) {
  std::vector<int64_t> sizes = {batch};
  for (const int64_t size : last_of(pixels, dims)) sizes.push_back(size);
  sizes.push_back(channels);
  return at::zeros(sizes).movedim(-1, 1);
}

double time_mkldnn(const ConvCandidate& c) {
  // A frame of two or three tensors, and the step that a plan would have.
  Frame frame;
  frame.tensors = {zero_image(c.shape.batch, c.shape.in_channels, c.shape.in, c.dims),
                   zero_image(c.shape.batch, c.shape.out_channels, c.shape.out, c.dims), c10::IValue()};
  frame.pointers.resize(frame.tensors.size());
  const auto slot = [&](int buffer, int like) {
    return Slot{buffer, frame.tensors[static_cast<size_t>(like)].toTensor().to(at::kMeta)};
  };
  const Slot residual = slot(1, 1);
  const auto step = mkldnn_conv_step(c, slot(0, 0), c.residual ? &residual : nullptr, slot(2, 1));
  return best_milliseconds([&] { step->run(frame); });
}

using TimesKey = std::tuple<std::vector<int64_t>, int, std::string>;

TimesKey times_key(const ConvCandidate& c, const kernels::Fp32ConvKernel& kernel, int threads) {
  const kernels::ConvShape& s = c.shape;
  std::vector<int64_t> numbers = {
      s.batch,           s.in_channels, s.out_channels, s.groups, static_cast<int64_t>(c.activate.kind),
      c.residual ? 1 : 0};
  for (const ConvExtent& extent : {s.in, s.kernel, s.stride, s.pad, s.dilation, s.out})
    numbers.insert(numbers.end(), extent.begin(), extent.end());
  return {std::move(numbers), threads, kernel.name};
}

}  // namespace

const char* mkldnn_conv_refusal(const ConvCandidate& c) {
  if (c.dims < 2) return "mkldnn gives one-dimensional results contiguous";
  if (c.shape.transposed) return "mkldnn's fused convolution is not transposed";
  if (c.uneven_padding) return "mkldnn pads both sides alike";
  const bool plain = c.activate.kind == ConvActivation::kNone || c.activate.kind == ConvActivation::kRelu;
  if (c.residual && !plain) return "mkldnn adds a residual before relu only";
  if (!try_mkldnn(kMkldnnConv, "")) return "this libtorch has no mkldnn";
  return nullptr;
}

std::unique_ptr<Step> mkldnn_conv_step(const ConvCandidate& candidate, const Slot& x, const Slot* residual,
                                       const Slot& y) {
  const auto op = try_mkldnn(kMkldnnConv, residual ? "binary" : "");
  if (!op) fail(ErrorCode::kUnsupported, "{} is not registered", kMkldnnConv);
  return std::make_unique<AtenStep>(*op, mkldnn_operands(candidate, x, residual),
                                    std::vector<AtenOutput>{{y}}, "mkldnn_convolution_pointwise");
}

ConvTimes time_conv(const ConvCandidate& candidate, const kernels::Fp32ConvKernel& kernel,
                    const at::Tensor& packed, int threads) {
  static std::mutex mutex;
  static std::map<TimesKey, ConvTimes> known;
  // Held while timing too: two at once would disturb each other.
  const std::lock_guard lock(mutex);
  const TimesKey key = times_key(candidate, kernel, threads);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  ConvTimes times{time_ours(candidate, kernel, packed, threads), time_mkldnn(candidate)};
  known.emplace(key, times);
  return times;
}

}  // namespace halftone::compiler
