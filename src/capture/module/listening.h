// Connects a tracer to torch's dispatcher while a capture runs.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <mutex>

#include "capture/module/tracer.h"

namespace halftone {

/// While it lives, the tracer gets every operator that this thread calls. There is one at a time in the
/// process: others wait. kState where this thread captures already, kUnsupported where modes of the caller
/// (autocast, vmap, dispatch modes) would change what the operators do.
class Listening {
 public:
  explicit Listening(Tracer& tracer);
  ~Listening();
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  std::unique_lock<std::mutex> turn_;
  torch::Library library_;  ///< registered only while somebody listens: the key is on loan
  c10::impl::IncludeDispatchKeyGuard include_;
};

}  // namespace halftone
