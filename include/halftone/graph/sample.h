// One call of a model, as Python would make it.
#pragma once

#include <ATen/core/ivalue.h>

#include <map>
#include <string>
#include <vector>

namespace halftone {

struct Sample {
  std::vector<c10::IValue> args;
  std::map<std::string, c10::IValue> kwargs;
};

}  // namespace halftone
