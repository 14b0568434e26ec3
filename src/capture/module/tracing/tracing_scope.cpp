#include "capture/module/tracing/tracing_scope.h"

#include <ATen/ops/dropout_native.h>
#include <ATen/ops/native_dropout.h>

#include "base/errors.h"
#include "capture/module/tracing/tracing_key.h"
#include "halftone/capture/capture_module.h"

namespace halftone {
namespace {

thread_local Tracer* current = nullptr;

template <TraceLevel level>
void trace(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  // Another thread's mode reaches this one where torch hands it on; its tracer does not.
  if (!current) {
    const PauseTracing pause;
    return op.redispatchBoxed(keys_below(level, keys), stack);
  }
  current->handle(op, keys, *stack);
}

std::unique_lock<std::mutex> take_turn() {
  if (current) fail(ErrorCode::kState, "a capture inside a capture");
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

void check_modes() {
  const c10::DispatchKeySet ordinary = c10::default_included_set;
  const c10::DispatchKeySet extra = c10::impl::tls_local_dispatch_key_set().included_ - ordinary;
  if (!extra.empty())
    fail(ErrorCode::kUnsupported, "a dispatch mode of the caller is on: {}", c10::toString(extra));
}

KeyRegistration listen(TraceLevel level) {
  check_modes();
  return register_at_key(
      tracing_key(level),
      level == TraceLevel::kAboveAutograd
          ? c10::KernelFunction::makeFromBoxedFunction<&trace<TraceLevel::kAboveAutograd>>()
          : c10::KernelFunction::makeFromBoxedFunction<&trace<TraceLevel::kBelowAutograd>>());
}

/// Dropout would fall apart above the key, into a mask of floats that backward keeps. One operator instead,
/// whose mask takes a byte for each element; the random stream is eager's (for doubles it may not be).
at::Tensor whole_dropout(const at::Tensor& input, double p, bool train) {
  const bool draws = train && p > 0 && p < 1 && input.numel() > 0 && input.scalar_type() != c10::kDouble;
  if (!current || !draws) return at::native::dropout(input, p, train);
  return std::get<0>(at::native_dropout(input, p, train));
}

/// For traces below autograd. Registered at the other level's key, which only threads that trace have
/// switched on: no other thread's dropout goes through what is being changed here.
std::pair<KeyRegistration, std::optional<torch::Library>> keep_dropout_whole(TraceLevel level) {
  if (level == TraceLevel::kAboveAutograd) return {};
  const c10::DispatchKey above = tracing_key(TraceLevel::kAboveAutograd);
  torch::Library dropout(torch::Library::IMPL, "aten", above, __FILE__, __LINE__);
  dropout.impl("dropout", TORCH_FN(whole_dropout));
  return {register_at_key(above, c10::KernelFunction::makeFallthrough()), std::move(dropout)};
}

c10::DispatchKeySet keys_of(TraceLevel level) {
  return level == TraceLevel::kAboveAutograd ? c10::DispatchKeySet(tracing_key(level)) : all_tracing_keys();
}

}  // namespace

CaptureLock::CaptureLock() : lock_(take_turn()) {}

TracingScope::TracingScope(Tracer& tracer)
    : tracing_(listen(tracer.level())),
      dropout_(keep_dropout_whole(tracer.level())),
      include_(keys_of(tracer.level())) {
  current = &tracer;
}

TracingScope::~TracingScope() {
  current = nullptr;
}

CaptureScope::CaptureScope(const torch::nn::Module& module) : active_(current != nullptr) {
  if (active_) current->recorder().enter_scope(&module);
}

CaptureScope::~CaptureScope() {
  if (active_ && current) current->recorder().leave_scope();
}

}  // namespace halftone
