// Autocast on the CPU: what it is while a model is compiled, and off while a graph runs.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>
#include <string>

namespace halftone {

/// Graphs hold their conversions as nodes. Autocast around a call would make others.
class WithoutAutocast {
  const c10::impl::ExcludeDispatchKeyGuard guard_{c10::autocast_dispatch_keyset};
};

class WithoutAutocastCache {
 public:
  WithoutAutocastCache();
  ~WithoutAutocastCache();
  WithoutAutocastCache(const WithoutAutocastCache&) = delete;
  WithoutAutocastCache& operator=(const WithoutAutocastCache&) = delete;

 private:
  const bool before_;
};

/// What this thread's autocast converts to; nothing if it is off. Its cache only spares conversions.
std::optional<c10::ScalarType> autocast_dtype();

/// "off", "on (BFloat16)".
std::string describe_autocast(const std::optional<c10::ScalarType>& dtype);

}  // namespace halftone
