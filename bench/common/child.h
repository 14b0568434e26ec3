// This program again in a fresh process: peaks of memory never go down, and a first call comes only once.
#pragma once

#include <string>
#include <vector>

namespace halftone::bench {

/// What the child printed. std::runtime_error where it could not be started or did not end with 0.
std::string output_of_child(const std::vector<std::string>& arguments);

}  // namespace halftone::bench
