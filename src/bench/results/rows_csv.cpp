#include "bench/results/rows_csv.h"

#include <algorithm>
#include <charconv>

#include "archive/bytes/text_file.h"
#include "base/errors.h"
#include "base/nearest.h"
#include "bench/results/fields.h"
#include "bench/results/text.h"

namespace halftone {
namespace {

std::string cell_of(const BenchRow& row, const Field<BenchRow>& field, bool last) {
  const auto write = [&](const auto& value) -> std::string {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::string>) {
      return csv_cell(csv_guarded(utf8_text(value)), last);
    } else if constexpr (std::is_same_v<Value, int64_t>) {
      return fmt::to_string(value);
    } else {
      return value ? fmt::to_string(*value) : std::string();
    }
  };
  return std::visit([&](auto member) { return write(row.*member); }, field.member);
}

template <typename Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// Sets the member; returns what is wrong with the cell, or "".
std::string set_cell(const CsvCell& cell, const Field<BenchRow>& field, BenchRow& row) {
  const auto set = [&](auto& value) -> std::string {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::string>) {
      value = csv_unguarded(cell.text);
      return {};
    } else if constexpr (std::is_same_v<Value, int64_t>) {
      return parse_number(cell.text, value) ? "" : "is not an integer";
    } else {
      if (cell.text.empty()) return value.reset(), std::string();
      typename Value::value_type number{};
      if (!parse_number(cell.text, number)) return "is not a number";
      value = number;
      return {};
    }
  };
  const std::string problem = std::visit([&](auto member) { return set(row.*member); }, field.member);
  if (!problem.empty()) return fmt::format("\"{}\" {}", terminal_text(cell.text, 60), problem);
  return problem_of(row, field);
}

/// The fields that the header's columns stand for.
std::vector<const Field<BenchRow>*> read_header(const CsvRecord& header, std::string_view file) {
  const std::vector<std::string> known = csv_columns();
  std::vector<const Field<BenchRow>*> fields;
  for (const CsvCell& cell : header.cells) {
    const auto found = std::ranges::find(known, cell.text);
    if (found == known.end()) {
      fail(ErrorCode::kCorruptFile, "{}: line 1: unknown column \"{}\"{}", file, terminal_text(cell.text, 60),
           did_you_mean(cell.text, known));
    }
    const Field<BenchRow>* field = &fields_of<BenchRow>()[static_cast<size_t>(found - known.begin())];
    if (std::ranges::find(fields, field) != fields.end()) {
      fail(ErrorCode::kCorruptFile, "{}: line 1: column \"{}\" twice", file, cell.text);
    }
    fields.push_back(field);
  }
  if (std::ranges::none_of(fields, [](const auto* field) { return field->name == "name"; })) {
    fail(ErrorCode::kCorruptFile, "{}: line 1: column \"name\" is missing", file);
  }
  return fields;
}

BenchRow read_record(const CsvRecord& record, const std::vector<const Field<BenchRow>*>& fields,
                     std::string_view file) {
  if (record.cells.size() != fields.size()) {
    fail(ErrorCode::kCorruptFile, "{}: line {}: {} cells, the header has {}", file, record.line,
         record.cells.size(), fields.size());
  }
  BenchRow row;
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string problem = set_cell(record.cells[i], *fields[i], row);
    if (!problem.empty())
      fail(ErrorCode::kCorruptFile, "{}: line {}: {}: {}", file, record.line, fields[i]->name, problem);
  }
  return row;
}

/// Files of other programs may have another last column: there all cells are enough.
bool is_whole(const CsvDocument& document, size_t columns) {
  const CsvRecord& last = document.records.back();
  if (document.open_quote || last.cells.size() < columns) return false;
  const bool ours = document.records.front().cells.back().text == fields_of<BenchRow>().back().name;
  return !ours || (last.cells.back().quoted && last.cells.back().text.empty());
}

}  // namespace

std::vector<std::string> csv_columns() {
  std::vector<std::string> names;
  for (const Field<BenchRow>& field : fields_of<BenchRow>()) names.emplace_back(field.name);
  return names;
}

std::string csv_header() {
  return fmt::format("{}\n", fmt::join(csv_columns(), ","));
}

std::string csv_lines(std::span<const BenchRow> rows) {
  const auto fields = fields_of<BenchRow>();
  std::string text;
  for (const BenchRow& row : rows) {
    check_writable(row);
    for (const Field<BenchRow>& field : fields) {
      const bool last = &field == &fields.back();
      text += cell_of(row, field, last);
      text += last ? '\n' : ',';
    }
  }
  return text;
}

bool is_whole_record(const CsvDocument& document) {
  return is_whole(document, fields_of<BenchRow>().size());
}

std::string cut_line_note(std::string_view file, std::string_view line, std::string_view what_happens) {
  return fmt::format("{}: the last line was cut off, by a crash it seems, and is {}: {}", file, what_happens,
                     terminal_text(line, 200));
}

std::string to_csv(std::span<const BenchRow> rows) {
  return csv_header() + csv_lines(rows);
}

BenchCsv bench_rows_from_csv(std::string_view text, std::string_view file) {
  CsvDocument document = parse_csv(text, file);
  if (document.records.empty()) fail(ErrorCode::kCorruptFile, "{}: empty, not even a header", file);
  const std::vector<const Field<BenchRow>*> fields = read_header(document.records.front(), file);
  BenchCsv result;
  if (!document.ended && document.records.size() > 1 && !is_whole(document, fields.size())) {
    result.notes.push_back(cut_line_note(file, text.substr(document.records.back().begin), "left out"));
    document.records.pop_back();
  }
  for (size_t i = 1; i < document.records.size(); ++i)
    result.rows.push_back(read_record(document.records[i], fields, file));
  return result;
}

BenchCsv read_bench_csv(const std::string& path) {
  return bench_rows_from_csv(read_text_file(path), path);
}

void write_bench_csv(const std::string& path, std::span<const BenchRow> rows) {
  write_text_file(path, to_csv(rows));
}

}  // namespace halftone
