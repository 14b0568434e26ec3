#include "fortunes.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <stdexcept>

namespace accuracy {

namespace {

/// "\t\t-- Mark Twain": who said it is not part of the sentence.
bool is_attribution(const std::string& line) {
  const size_t start = line.find_first_not_of(" \t");
  return start != std::string::npos && line.compare(start, 2, "--") == 0;
}

void add_line(const std::string& line, std::string& entry) {
  const size_t start = line.find_first_not_of(" \t\b");
  if (start == std::string::npos) return;
  if (!entry.empty()) entry += ' ';
  entry += line.substr(start);
}

}  // namespace

std::vector<std::string> read_fortunes(const std::vector<std::string>& files) {
  std::vector<std::string> entries;
  std::set<std::string> seen;
  const auto finish = [&](std::string& entry) {
    if (std::count(entry.begin(), entry.end(), ' ') >= 3 && seen.insert(entry).second)
      entries.push_back(entry);
    entry.clear();
  };
  for (const std::string& file : files) {
    std::ifstream in(file);
    if (!in) throw std::runtime_error(file + ": cannot be read");
    std::string line, entry;
    while (std::getline(in, line)) {
      if (line == "%") {
        finish(entry);
      } else if (!is_attribution(line)) {
        add_line(line, entry);
      }
    }
    finish(entry);
  }
  return entries;
}

}  // namespace accuracy
