#include "graph/aten/key_registration.h"

namespace halftone {

KeyRegistration register_at_key(c10::DispatchKey key, const c10::KernelFunction& kernel) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  KeyRegistration handles;
  if (!dispatcher.hasBackendFallbackForDispatchKey(key)) {
    handles.push_back(dispatcher.registerFallback(key, kernel, "halftone: every operator"));
    return handles;
  }
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op || op->hasKernelForDispatchKey(key)) continue;
    handles.push_back(
        dispatcher.registerImpl(name, key, kernel, std::nullopt, nullptr, "halftone: every operator"));
  }
  return handles;
}

}  // namespace halftone
