// The dispatch keys of quantized tensors: the one place that names them.
#pragma once

#include <c10/core/DispatchKeySet.h>

namespace halftone {

/// Above autograd, autocast and tracing, and no backend: composite kernels are not looked up for it, so that
/// its fallback sees every operator that gets a quantized tensor and has no kernel of ours. (One at
/// PrivateUse3 would miss those that have a composite kernel.) Inputs' gradients are not lost there, because
/// our kernels call operators that have a formula. torch keeps the key for tests of such wrappers and uses it
/// nowhere.
inline constexpr c10::DispatchKey kWrapperKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

/// PrivateUse3 is what is left below: a backend without kernels, should the key above ever be switched off.
inline constexpr c10::DispatchKeySet kQuantizedKeys =
    c10::DispatchKeySet({kWrapperKey, c10::DispatchKey::PrivateUse3, c10::DispatchKey::AutogradPrivateUse3});

}  // namespace halftone
