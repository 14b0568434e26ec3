// The plain members of the benchmark's structs, by name: JSON and CSV, reading and writing, all walk these
// tables.
#pragma once

#include <limits>
#include <span>
#include <string_view>
#include <variant>

#include "halftone/bench/results.h"

namespace halftone {

template <typename T>
using FieldMember =
    std::variant<std::string T::*, int64_t T::*, std::optional<double> T::*, std::optional<int64_t> T::*>;

template <typename T>
struct Field {
  std::string_view name;
  FieldMember<T> member;
  bool required = false;  ///< must be there, and a text must not be empty
  double smallest = -std::numeric_limits<double>::infinity();
  double largest =
      std::numeric_limits<double>::infinity();  ///< NaN is always allowed: a model may compute it
};

/// Defined for BenchRow (in the order of the CSV's columns), BenchLayer, BenchCandidate, BenchChoice,
/// BenchMachine and BenchMean.
template <typename T>
std::span<const Field<T>> fields_of();

/// What is wrong with a value, or "": out of range, empty, no word that is known.
template <typename T>
std::string problem_of(const T& object, const Field<T>& field);

/// kInvalidArgument if a row could not be read again. Layers and plan included.
void check_writable(const BenchRow& row);

}  // namespace halftone
