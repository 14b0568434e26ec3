// Integer arithmetic that says when it overflows: every size and offset of an untrusted file goes through
// here.
#pragma once

#include <concepts>
#include <optional>
#include <span>
#include <utility>

namespace halftone {

template <std::integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

template <std::integral T>
constexpr std::optional<T> checked_sub(T a, T b) {
  T difference{};
  if (__builtin_sub_overflow(a, b, &difference)) return std::nullopt;
  return difference;
}

template <std::integral T>
constexpr std::optional<T> checked_mul(T a, T b) {
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// factors[0] * factors[1] * …, 1 for an empty span.
template <std::integral T>
constexpr std::optional<T> checked_product(std::span<const T> factors) {
  T product = 1;
  for (T factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return product;
}

/// The value as To, or nothing if To cannot hold it.
template <std::integral To, std::integral From>
constexpr std::optional<To> checked_cast(From value) {
  if (!std::in_range<To>(value)) return std::nullopt;
  return static_cast<To>(value);
}

}  // namespace halftone
