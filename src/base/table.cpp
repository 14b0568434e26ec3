// Tables, wrapped text and numbers for terminals.
#include "halftone/cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <limits>
#include <numeric>
#include <sstream>
#include <string_view>

namespace halftone {

namespace {

constexpr int kGap = 2;
constexpr int kSmallest = 8;  // what a column that shrinks keeps
std::atomic<int> page_width{0};

int paragraph_width(int asked) {
  const int page = page_width;
  return page > 0 ? page : asked;
}

int table_width(int asked) {
  return page_width == kWholeTables ? std::numeric_limits<int>::max() : paragraph_width(asked);
}

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

/// Takes one by one from the column that is furthest above what it should keep, then from those above the
/// smallest width.
void shrink_to(int width, const std::vector<Column>& columns, std::vector<int>& widths) {
  int total =
      std::accumulate(widths.begin(), widths.end(), 0) + kGap * (static_cast<int>(columns.size()) - 1);
  for (const bool respect_keep : {true, false}) {
    while (total > width) {
      size_t victim = columns.size();
      int largest_excess = 0;
      for (size_t i = 0; i < columns.size(); ++i) {
        const int excess = widths[i] - (respect_keep ? columns[i].keep : kSmallest);
        if (columns[i].cut == Cut::kNever || excess <= largest_excess) continue;
        largest_excess = excess;
        victim = i;
      }
      if (victim == columns.size()) break;
      --widths[victim];
      --total;
    }
  }
}

std::string render_row(const std::vector<Column>& columns, const std::vector<int>& widths, const Row& cells) {
  std::string line;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) line.append(kGap, ' ');
    const bool is_name = columns[i].cut == Cut::kName;
    const std::string cell = is_name ? shorten_name(cells[i], widths[i]) : shorten(cells[i], widths[i]);
    const std::string padding(widths[i] - width_of(cell), ' ');
    line += columns[i].align == Align::kRight ? padding + cell : cell + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

void set_page_width(int columns) {
  page_width = columns;
}

std::string shorten(const std::string& text, int width) {
  const int length = width_of(text);
  if (length <= width) return text;
  if (width <= 0) return {};
  const int head = (width - 1) / 2;
  const int tail = width - 1 - head;
  return text.substr(0, byte_of(text, head)) + "…" + text.substr(byte_of(text, length - tail));
}

std::string shorten_name(const std::string& name, int width) {
  std::string text = name;
  for (size_t begin = 0; width_of(text) > width;) {
    const size_t dot = text.find('.', begin);
    if (dot == std::string::npos) return shorten(text, width);
    const bool number = std::all_of(text.begin() + begin, text.begin() + dot,
                                    [](unsigned char c) { return std::isdigit(c); });
    const size_t kept = number ? dot : begin + byte_of(std::string_view(text).substr(begin), 1);
    text.erase(kept, dot - kept);
    begin = kept + 1;
  }
  return text;
}

std::string wrap_text(const std::string& text, int width) {
  width = paragraph_width(width);
  std::string lines;
  std::string line = "-";
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (width_of(line) + 1 + width_of(word) > width && line.size() > 1) {
      lines += line + '\n';
      line = " ";
    }
    line += ' ' + word;
  }
  return lines + line + '\n';
}

std::string render_table(const std::vector<Column>& columns, const std::vector<Row>& rows, int width) {
  std::vector<int> widths = natural_widths(columns, rows);
  shrink_to(table_width(width), columns, widths);
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

std::string describe_bytes(int64_t bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double amount = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  // 999.95 and more would be written as 1000.0.
  while (amount >= 999.95 && unit + 1 < kUnits.size()) {
    amount /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

std::string with_commas(int64_t number) {
  std::string text = fmt::to_string(number);
  for (int64_t i = static_cast<int64_t>(text.size()) - 3; i > (number < 0 ? 1 : 0); i -= 3)
    text.insert(i, ",");
  return text;
}

}  // namespace halftone
