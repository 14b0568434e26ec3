// One kernel for every operator at one dispatch key.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <vector>

namespace halftone {

using KeyRegistration = std::vector<c10::RegistrationHandleRAII>;

/// While the result lives, this is the kernel of every operator at the key that has none of its own there.
/// Registered as the key's fallback where the key is free. A key takes one fallback only: if it has one
/// already, each operator gets the kernel for itself, which comes before a fallback. The other fallback is
/// then hidden from all threads that have the key switched on, and operators defined later do not get the
/// kernel.
KeyRegistration register_at_key(c10::DispatchKey key, const c10::KernelFunction& kernel);

}  // namespace halftone
