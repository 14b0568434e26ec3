// The columns of the benchmark's CSV, and a row as a line.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/results/csv.h"
#include "halftone/bench/results.h"

namespace halftone {

std::vector<std::string> csv_columns();
std::string csv_header();  ///< with its line end
std::string csv_lines(std::span<const BenchRow> rows);

/// Whether a last record without line end is known to be whole. Its last cell, the error, is always written
/// in quotes, so that only an empty one is beyond doubt: a longer one may have been cut inside of a doubled
/// quote.
bool is_whole_record(const CsvDocument& document);

/// "the last line was cut off by a crash and is left out: …"
std::string cut_line_note(std::string_view file, std::string_view line, std::string_view what_happens);

}  // namespace halftone
