#include "table.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace halftone::cli {

namespace {

constexpr int kGap = 2;
constexpr int kSmallest = 8;  // what a column that shrinks keeps

bool starts_code_point(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

int width_of(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), starts_code_point));
}

/// The byte at which code point number `index` begins.
size_t byte_of(std::string_view text, int index) {
  size_t byte = 0;
  while (byte < text.size() && index > 0) {
    ++byte;
    while (byte < text.size() && !starts_code_point(text[byte])) ++byte;
    --index;
  }
  return byte;
}

std::vector<int> natural_widths(const std::vector<Column>& columns, const std::vector<Row>& rows) {
  std::vector<int> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    int widest = width_of(columns[i].title);
    for (const Row& row : rows) widest = std::max(widest, width_of(row.at(i)));
    widths.push_back(widest);
  }
  return widths;
}

/// Takes one column after the other from the widest column that shrinks.
void shrink_to(int width, const std::vector<Column>& columns, std::vector<int>& widths) {
  int total =
      std::accumulate(widths.begin(), widths.end(), 0) + kGap * (static_cast<int>(columns.size()) - 1);
  while (total > width) {
    int widest = -1;
    for (size_t i = 0; i < columns.size(); ++i) {
      const bool may = columns[i].shrinks && widths[i] > kSmallest;
      if (may && (widest < 0 || widths[i] > widths[widest])) widest = static_cast<int>(i);
    }
    if (widest < 0) return;
    --widths[widest];
    --total;
  }
}

std::string render_row(const std::vector<Column>& columns, const std::vector<int>& widths, const Row& cells) {
  std::string line;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) line.append(kGap, ' ');
    const std::string cell = shorten(cells[i], widths[i]);
    const std::string padding(widths[i] - width_of(cell), ' ');
    line += columns[i].align == Align::kRight ? padding + cell : cell + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

std::string shorten(const std::string& text, int width) {
  const int length = width_of(text);
  if (length <= width) return text;
  if (width <= 0) return {};
  const int head = (width - 1) / 2;
  const int tail = width - 1 - head;
  return text.substr(0, byte_of(text, head)) + "…" + text.substr(byte_of(text, length - tail));
}

std::string render_table(const std::vector<Column>& columns, const std::vector<Row>& rows, int width) {
  std::vector<int> widths = natural_widths(columns, rows);
  shrink_to(width, columns, widths);
  Row titles;
  Row rules;
  for (size_t i = 0; i < columns.size(); ++i) {
    titles.push_back(columns[i].title);
    rules.push_back(std::string(widths[i], '-'));
  }
  std::string text = render_row(columns, widths, titles) + render_row(columns, widths, rules);
  for (const Row& row : rows) text += render_row(columns, widths, row);
  return text;
}

}  // namespace halftone::cli
