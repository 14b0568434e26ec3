// Connects a tracer to torch's dispatcher while a capture runs.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <mutex>
#include <optional>
#include <utility>

#include "capture/module/tracing/tracer.h"
#include "graph/aten/key_registration.h"

namespace halftone {

/// One capture at a time in the process: others wait, since a capture changes its module for a while, and
/// reads it again to check the graph. kState if this thread captures already.
class CaptureLock {
 public:
  CaptureLock();

 private:
  std::unique_lock<std::mutex> lock_;
};

/// While it lives, the tracer gets every operator that this thread calls. To be made in one's turn.
/// kUnsupported if modes of the caller (vmap, dispatch modes) would change what the operators do.
class TracingScope {
 public:
  explicit TracingScope(Tracer& tracer);
  ~TracingScope();
  TracingScope(const TracingScope&) = delete;
  TracingScope& operator=(const TracingScope&) = delete;

 private:
  KeyRegistration tracing_;  ///< registered only while a trace runs: the key belongs to torch
  std::pair<KeyRegistration, std::optional<torch::Library>> dropout_;  ///< as tracing_
  c10::impl::IncludeDispatchKeyGuard include_;
};

}  // namespace halftone
