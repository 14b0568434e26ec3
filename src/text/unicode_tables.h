// The tables of unicode_tables.inc, which make_unicode_tables.py writes.
#pragma once

#include <cstdint>
#include <span>

namespace halftone {

struct ClassRun {
  char32_t first, last;
  uint8_t value;
};
/// Code points first, first + stride, …, last each become themselves plus delta.
struct LowerRun {
  char32_t first, last, stride;
  int32_t delta;
};
/// `count_and_kind`: twice the number of characters, plus 1 for a compatibility decomposition.
struct Decomposition {
  char32_t from;
  uint16_t count_and_kind, offset;
};
struct Composition {
  char32_t first, second, both;
};

std::span<const ClassRun> class_runs();      ///< bits of CharClass
std::span<const ClassRun> combining_runs();  ///< canonical combining classes that are not 0
std::span<const LowerRun> lower_runs();
std::span<const Decomposition> decompositions();  ///< by `from`, then by kind
std::span<const char32_t> decomposed();           ///< what `offset` points into
std::span<const Composition> compositions();      ///< by first, then by second

}  // namespace halftone
