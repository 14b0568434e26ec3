// Deflated bytes of a zip member, read piece by piece. For untrusted files.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace halftone {

/// No deflated byte gives more than this many: what promises more is no deflated data.
inline constexpr size_t kMaxInflated = 1032;

/// The caller says how many bytes it wants, so memory is never what the file claims. Every error is
/// kCorruptFile and names `where`. Borrows the bytes.
class Inflater {
 public:
  Inflater(std::span<const std::byte> packed, std::string where);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Fills all of `out`; an error where the data end before.
  void read(std::span<std::byte> out);
  /// An error where there is more: data, or bytes behind them.
  void expect_end();

 private:
  struct Stream;
  /// How many bytes of `out` were filled: fewer only at the end of the data.
  size_t read_some(std::span<std::byte> out);
  std::span<const std::byte> packed_;  ///< what the stream has not seen yet
  std::string where_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace halftone
