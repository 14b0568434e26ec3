// Text tables that fit the width of a page.
#pragma once

#include <string>
#include <vector>

namespace halftone::cli {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
  /// Whether this column gives up space where the table is too wide. The middle of its text is cut, because
  /// the ends of qualified names tell most.
  bool shrinks = false;
};

using Row = std::vector<std::string>;

/// The table with a header line and a rule below it, at most `width` columns wide as long as the columns that
/// do not shrink allow it. Widths are counted in code points of UTF-8.
std::string render_table(const std::vector<Column>& columns, const std::vector<Row>& rows, int width);

/// `text` cut in the middle to `width` code points: "encoder.la…output.dense".
std::string shorten(const std::string& text, int width);

}  // namespace halftone::cli
