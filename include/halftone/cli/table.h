// Unstable: for the command line only, may change in any version.
// Text for display: tables that fit the width of a page, lists, and numbers in readable form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "halftone/base/api.h"

namespace halftone {

enum class Align { kLeft, kRight };

/// How a column gives up space where the table is too wide. kName is for qualified names: their leading parts
/// become initials ("e.l.0.output.dense"), so that different layers stay different.
enum class Cut { kNever, kMiddle, kName };

struct Column {
  std::string title;
  Align align = Align::kLeft;
  Cut cut = Cut::kNever;
  int keep = 8;  ///< width down to which the column is cut before other columns are
};

using Row = std::vector<std::string>;

/// For the whole process: how wide tables and paragraphs may be, in place of the widths that callers name
/// (100 for reports of the library). kWholeTables: nothing is cut, as a pipe wants it; paragraphs keep their
/// callers' width. 0: callers' widths again. The command line sets it to the terminal's.
inline constexpr int kWholeTables = -1;
HALFTONE_API void set_page_width(int columns);

/// The table with a header line and a rule below it, at most `width` columns wide as long as the columns that
/// do not shrink allow it. Widths are counted in code points of UTF-8.
HALFTONE_API std::string render_table(const std::vector<Column>& columns, const std::vector<Row>& rows,
                                      int width);

/// `text` as lines of at most `width`, the first one after a "- " and the others indented. Broken at spaces
/// only.
HALFTONE_API std::string wrap_text(const std::string& text, int width);

/// `text` cut in the middle to `width` code points: "some lo…ed text".
HALFTONE_API std::string shorten(const std::string& text, int width);
/// A qualified name with as many leading parts as initials as `width` asks for; numbers stay. Cut if that is
/// not enough.
HALFTONE_API std::string shorten_name(const std::string& name, int width);

/// "90.4 MB" (decimal units), "312 B".
HALFTONE_API std::string describe_bytes(int64_t bytes);
/// "22,713,216".
HALFTONE_API std::string with_commas(int64_t number);

}  // namespace halftone
