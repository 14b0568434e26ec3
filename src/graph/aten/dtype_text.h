// Dtypes in messages, in the one spelling that users know from Python.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>

namespace halftone {

/// "float32", "int64", "bfloat16", "bool".
inline std::string dtype_text(c10::ScalarType dtype) {
  // torch keeps both names: the Python one first, and for some types an older alias.
  const auto [name, alias] = c10::getDtypeNames(dtype);
  return name.empty() ? c10::toString(dtype) : std::string(name);
}

}  // namespace halftone
