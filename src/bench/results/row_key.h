// The key of a row: rows with equal keys are results of the same configuration.
#pragma once

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "halftone/bench/results.h"

namespace halftone {

using RowKey = std::tuple<std::string, std::string, std::string, std::string, int64_t, std::string>;

RowKey key_of(const BenchRow& row);             ///< name, mode, scheme, backend, batch, device
std::string describe_key(const BenchRow& row);  ///< for display; safe to print

/// Rows by key. Later rows of a key replace earlier ones (a file that was appended to holds the newest last);
/// those that were replaced are put into `replaced`.
std::map<RowKey, const BenchRow*> rows_by_key(std::span<const BenchRow> rows,
                                              std::vector<const BenchRow*>& replaced);

}  // namespace halftone
