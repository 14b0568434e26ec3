// SHA-256 (OpenSSL's), incremental.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace halftone {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  /// Ends the computation; the object must not be used after it.
  Sha256Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256Digest sha256(std::span<const std::byte> bytes);

/// 64 lower-case hexadecimal digits.
std::string to_hex(const Sha256Digest& digest);

}  // namespace halftone
