// Comma-separated values by RFC 4180, strictly, and with what is needed to mend a file that a crash cut off.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace halftone {

struct CsvCell {
  std::string text;
  bool quoted = false;
};

struct CsvRecord {
  std::vector<CsvCell> cells;
  size_t begin = 0;  ///< byte at which it begins
  size_t line = 1;   ///< at which it begins, from 1
};

struct CsvDocument {
  std::vector<CsvRecord> records;
  bool ended = true;        ///< the last record has its line end
  bool open_quote = false;  ///< the text ends inside of a quoted cell
};

/// Line ends are "\n" or "\r\n"; a byte-order mark is skipped. kCorruptFile, with `file`, line and column,
/// for a quote inside of a bare cell, text after a closing quote and a lone "\r".
CsvDocument parse_csv(std::string_view text, std::string_view file);

/// The cell as it stands in a file: in quotes if it has to be, or `always`.
std::string csv_cell(std::string_view text, bool always_quoted = false);

/// With a ' in front if a spreadsheet would take the text for a formula, or if it begins with a ' that
/// csv_unguarded() would take off: csv_unguarded(csv_guarded(x)) == x for every x.
std::string csv_guarded(std::string_view text);
std::string_view csv_unguarded(std::string_view text);

}  // namespace halftone
