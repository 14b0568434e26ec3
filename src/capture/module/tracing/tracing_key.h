// The dispatch keys that a trace listens at: the one place that names them.
#pragma once

#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace halftone {

/// Where a call is seen. Both keys are modes: on in a thread by its local state, whatever the tensors are.
enum class TraceLevel {
  /// As the model wrote it, before composite operators fall apart: linear, layer_norm and attention are one
  /// node each, as torch.export has them, and sizes that only the decomposition needs never become operands.
  /// Above autograd, autocast and the key of quantized tensors. torch keeps the key for tests.
  kAboveAutograd,
  /// What autograd has a formula for, and what those formulas call in backward. torch builds a fake-tensor
  /// mode on this key; up to 2.15 it registers nothing for it. No other key between autograd and the
  /// selection
  /// of backends is free, so register_at_key() shares this one where that changes.
  kBelowAutograd,
};

constexpr c10::DispatchKey tracing_key(TraceLevel level) {
  return level == TraceLevel::kAboveAutograd ? c10::DispatchKey::TESTING_ONLY_GenericMode
                                             : c10::DispatchKey::Fake;
}

/// The keys that a call seen at this level goes on to.
inline c10::DispatchKeySet keys_below(TraceLevel level, c10::DispatchKeySet keys) {
  return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, tracing_key(level));
}

inline c10::DispatchKeySet all_tracing_keys() {
  return c10::DispatchKeySet(
      {tracing_key(TraceLevel::kAboveAutograd), tracing_key(TraceLevel::kBelowAutograd)});
}

/// While it lives, calls of this thread are not traced.
class PauseTracing {
 public:
  PauseTracing() : guard_(all_tracing_keys()) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

/// While it lives, they are again.
class ResumeTracing {
 public:
  ResumeTracing()
      : guard_(c10::impl::tls_local_dispatch_key_set().included_,
               c10::impl::tls_local_dispatch_key_set().excluded_ - all_tracing_keys()) {}

 private:
  c10::impl::ForceDispatchKeyGuard guard_;
};

}  // namespace halftone
