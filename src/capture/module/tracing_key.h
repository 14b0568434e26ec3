// The dispatch key that a capture listens at: the one place that names it.
#pragma once

#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace halftone {

/// Above autograd, autocast and the key of quantized tensors. There a call is seen as the model wrote it,
/// before composite operators fall apart: linear, layer_norm and attention are one node each, as torch.export
/// has them, and sizes that only the decomposition needs never become operands. It is a mode: on in a thread
/// by its local state, whatever the tensors are. torch keeps the key for tests and registers nothing for it.
inline constexpr c10::DispatchKey kTracingKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

/// While it lives, calls of this thread are not traced.
class PauseTracing {
 public:
  PauseTracing() : guard_(kTracingKey) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

}  // namespace halftone
