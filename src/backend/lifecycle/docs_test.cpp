// docs/lifecycle.md shows the table that the code follows.
#include <fstream>
#include <map>
#include <sstream>

#include "backend/lifecycle/test_support.h"

namespace halftone {
namespace {

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  std::string cell;
  std::getline(stream, cell, '|');
  while (std::getline(stream, cell, '|')) {
    const size_t begin = cell.find_first_not_of(' '), end = cell.find_last_not_of(' ');
    cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
  }
  return cells;
}

/// What the docs say of a call: the state that it ends in, "stays", or the refusal.
std::string words_of(const Transition& entry) {
  if (!entry.to) return "✗ " + std::string(entry.reason);
  if (*entry.to == entry.from) return "stays";
  return "→ " + std::string(to_string(*entry.to));
}

TEST(LifecycleDocs, ShowTheTable) {
  std::ifstream file(LIFECYCLE_DOCS);
  ASSERT_TRUE(file) << LIFECYCLE_DOCS;
  std::map<std::string, std::vector<std::string>> rows;  // by state
  std::vector<std::string> header;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("| state |", 0) == 0) header = cells_of(line);
    for (const char* state : {"INIT", "ACTIVE", "INACTIVE", "CHECKPOINT_LOADED", "DEPLOYED"}) {
      if (line.rfind(fmt::format("| {} |", state), 0) == 0) rows[state] = cells_of(line);
    }
  }
  ASSERT_EQ(rows.size(), 5u);
  for (const Transition& entry : lifecycle_table()) {
    const auto column = std::find(header.begin(), header.end(), fmt::format("`{}`", to_string(entry.call)));
    ASSERT_NE(column, header.end()) << to_string(entry.call);
    const auto& cells = rows[std::string(to_string(entry.from))];
    ASSERT_EQ(cells.size(), header.size());
    EXPECT_EQ(cells[static_cast<size_t>(column - header.begin())], words_of(entry))
        << to_string(entry.from) << " " << to_string(entry.call);
  }
}

}  // namespace
}  // namespace halftone
