// English sentences of people: the entries of Debian's fortune files.
#pragma once

#include <string>
#include <vector>

namespace accuracy {

/// Entries of the files (separated by lines of "%"), without the attribution, lines joined, those of four
/// words and more; in order, without repeats. Throws std::runtime_error for a file that cannot be read.
std::vector<std::string> read_fortunes(const std::vector<std::string>& files);

}  // namespace accuracy
