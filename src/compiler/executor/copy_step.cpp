#include "compiler/executor/copy_step.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "compiler/executor/aten_step.h"
#include "cpu/chunked_parallel_for.h"

namespace halftone::compiler {

namespace {

/// Whatever ATen can copy; for other dtypes.
class AtenCopyStep final : public Step {
 public:
  AtenCopyStep(Slot from, Slot to) : from_(std::move(from)), to_(std::move(to)) {}
  void run(Frame& frame) const override { tensor_at(to_, frame).copy_(tensor_at(from_, frame)); }
  std::string kernel() const override { return "copy"; }

 private:
  Slot from_, to_;
};

/// A dimension that is walked; strides in bytes.
struct Walk {
  int64_t size = 1, from = 0, to = 0;
};

constexpr size_t kMaxWalks = 8;
constexpr int64_t kTaskBytes = 64 << 10;  // what a task copies at least

/// Without dimensions of one element, neighbours merged if both sides allow it; the innermost is the last.
std::vector<Walk> walks_of(const Slot& from, const Slot& to) {
  const auto bytes = static_cast<int64_t>(from.meta.element_size());
  std::vector<Walk> walks;
  for (size_t i = 0; i < from.sizes().size(); ++i) {
    const Walk next{from.sizes()[i], from.strides()[i] * bytes, to.strides()[i] * bytes};
    if (next.size == 1) continue;
    if (!walks.empty() && walks.back().from == next.from * next.size &&
        walks.back().to == next.to * next.size) {
      walks.back() = {walks.back().size * next.size, next.from, next.to};
    } else {
      walks.push_back(next);
    }
  }
  if (walks.empty()) walks.push_back({1, bytes, bytes});
  return walks;
}

template <typename T>
void copy_line(const std::byte* from, std::byte* to, const Walk& walk) {
  for (int64_t i = 0; i < walk.size; ++i) std::memcpy(to + i * walk.to, from + i * walk.from, sizeof(T));
}

/// Line by line, the lines dealt to the threads. On our own threads: ATen's would spin beside them.
class StridedCopyStep final : public Step {
 public:
  StridedCopyStep(const Slot& from, const Slot& to, std::vector<Walk> walks)
      : from_(from.operand()), to_(to.operand()), bytes_(static_cast<int64_t>(from.meta.element_size())) {
    line_ = walks.back();
    walks.pop_back();
    for (const Walk& walk : walks) {
      lines_ *= walk.size;
      outer_[depth_++] = walk;
    }
  }

  void run(Frame& frame) const override {
    const auto* from = frame.at<const std::byte>(from_);
    auto* to = frame.at<std::byte>(to_);
    chunked_parallel_for(*frame.parallel_for, lines_, kTaskBytes / (line_.size * bytes_),
                         [&](int64_t first, int64_t last) { copy_lines(from, to, first, last); });
  }
  std::string kernel() const override { return "copy"; }

 private:
  void copy_lines(const std::byte* from, std::byte* to, int64_t first, int64_t last) const {
    std::array<int64_t, kMaxWalks> at{};
    int64_t rest = first;
    for (size_t d = depth_; d-- > 0; rest /= outer_[d].size) {
      at[d] = rest % outer_[d].size;
      from += at[d] * outer_[d].from;
      to += at[d] * outer_[d].to;
    }
    for (int64_t line = first; line < last; ++line) {
      copy_one(from, to);
      for (size_t d = depth_; d-- > 0;) {  // the next line, as an odometer counts
        from += outer_[d].from;
        to += outer_[d].to;
        if (++at[d] < outer_[d].size) break;
        from -= outer_[d].from * outer_[d].size;
        to -= outer_[d].to * outer_[d].size;
        at[d] = 0;
      }
    }
  }

  void copy_one(const std::byte* from, std::byte* to) const {
    if (line_.from == bytes_ && line_.to == bytes_) {
      std::memcpy(to, from, static_cast<size_t>(line_.size * bytes_));
      return;
    }
    switch (bytes_) {
      case 1:
        return copy_line<uint8_t>(from, to, line_);
      case 2:
        return copy_line<uint16_t>(from, to, line_);
      case 4:
        return copy_line<uint32_t>(from, to, line_);
      case 8:
        return copy_line<uint64_t>(from, to, line_);
      default:
        for (int64_t i = 0; i < line_.size; ++i)
          std::memcpy(to + i * line_.to, from + i * line_.from, static_cast<size_t>(bytes_));
    }
  }

  Operand from_, to_;
  int64_t bytes_;
  Walk line_;
  std::array<Walk, kMaxWalks> outer_;
  size_t depth_ = 0;
  int64_t lines_ = 1;
};

/// Two dimensions change places: one is dense where it is read, the other where it is written. Copied in
/// square tiles, so that each line of the cache is used up while it is there.
class TransposeStep final : public Step {
 public:
  /// `walks`: the last two are those dimensions.
  TransposeStep(const Slot& from, const Slot& to, std::vector<Walk> walks)
      : from_(from.operand()), to_(to.operand()), bytes_(static_cast<int64_t>(from.meta.element_size())) {
    across_ = walks.back();
    walks.pop_back();
    down_ = walks.back();
    walks.pop_back();
    for (const Walk& walk : walks) {
      images_ *= walk.size;
      outer_[depth_++] = walk;
    }
  }

  static bool fits(const std::vector<Walk>& walks, int64_t bytes) {
    if (walks.size() < 2 || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)) return false;
    const Walk &down = walks[walks.size() - 2], &across = walks.back();
    return (across.from == bytes && down.to == bytes) || (across.to == bytes && down.from == bytes);
  }

  void run(Frame& frame) const override {
    const auto* from = frame.at<const std::byte>(from_);
    auto* to = frame.at<std::byte>(to_);
    const int64_t strips = (down_.size + kTile - 1) / kTile;
    chunked_parallel_for(*frame.parallel_for, images_ * strips, kTaskBytes / (kTile * across_.size * bytes_),
                         [&](int64_t first, int64_t last) {
                           for (int64_t i = first; i < last; ++i)
                             copy_strip(from, to, i / strips, i % strips * kTile);
                         });
  }
  std::string kernel() const override { return "copy"; }

 private:
  static constexpr int64_t kTile = 16;

  template <typename T>
  void copy_tiles(const std::byte* from, std::byte* to, int64_t rows) const {
    for (int64_t column = 0; column < across_.size; column += kTile) {
      const int64_t columns = std::min(kTile, across_.size - column);
      for (int64_t row = 0; row < rows; ++row) {
        const std::byte* read = from + row * down_.from + column * across_.from;
        std::byte* write = to + row * down_.to + column * across_.to;
        for (int64_t i = 0; i < columns; ++i)
          std::memcpy(write + i * across_.to, read + i * across_.from, sizeof(T));
      }
    }
  }

  void copy_strip(const std::byte* from, std::byte* to, int64_t image, int64_t first) const {
    for (size_t d = depth_; d-- > 0; image /= outer_[d].size) {
      from += image % outer_[d].size * outer_[d].from;
      to += image % outer_[d].size * outer_[d].to;
    }
    from += first * down_.from;
    to += first * down_.to;
    const int64_t rows = std::min(kTile, down_.size - first);
    if (bytes_ == 1) return copy_tiles<uint8_t>(from, to, rows);
    if (bytes_ == 2) return copy_tiles<uint16_t>(from, to, rows);
    if (bytes_ == 4) return copy_tiles<uint32_t>(from, to, rows);
    copy_tiles<uint64_t>(from, to, rows);
  }

  Operand from_, to_;
  int64_t bytes_;
  Walk down_, across_;
  std::array<Walk, kMaxWalks> outer_;
  size_t depth_ = 0;
  int64_t images_ = 1;
};

class CopiesStep final : public Step {
 public:
  explicit CopiesStep(std::vector<std::unique_ptr<Step>> copies) : copies_(std::move(copies)) {}
  void run(Frame& frame) const override {
    for (const auto& copy : copies_) copy->run(frame);
  }
  std::string kernel() const override { return "copy"; }

 private:
  std::vector<std::unique_ptr<Step>> copies_;
};

}  // namespace

std::unique_ptr<Step> make_copy_step(const Slot& from, const Slot& to) {
  if (from.numel() == 0) return std::make_unique<NothingStep>();
  const bool lazy = from.meta.is_conj() || from.meta.is_neg();
  if (from.dtype() != to.dtype() || lazy) return std::make_unique<AtenCopyStep>(from, to);
  std::vector<Walk> walks = walks_of(from, to);
  if (walks.size() > kMaxWalks) return std::make_unique<AtenCopyStep>(from, to);
  if (TransposeStep::fits(walks, static_cast<int64_t>(from.meta.element_size())))
    return std::make_unique<TransposeStep>(from, to, std::move(walks));
  return std::make_unique<StridedCopyStep>(from, to, std::move(walks));
}

std::unique_ptr<Step> make_copies_step(std::vector<std::unique_ptr<Step>> copies) {
  return std::make_unique<CopiesStep>(std::move(copies));
}

}  // namespace halftone::compiler
