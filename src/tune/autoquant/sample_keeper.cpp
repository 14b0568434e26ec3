#include "tune/autoquant/sample_keeper.h"

#include <algorithm>
#include <utility>

#include "tune/samples/sample_layout.h"

namespace halftone::aq {
namespace {

constexpr size_t kMaxSamples = 32;
constexpr int64_t kMaxOfShape = 5;
constexpr size_t kMaxShapes = 64;

}  // namespace

SampleKeeper::Kept SampleKeeper::copy(const Sample& sample) const {
  Kept kept{signature_of(sample), {}};
  const auto known = shapes_.find(kept.signature);
  const bool room =
      samples_.size() < kMaxSamples && (known == shapes_.end() || known->second.kept < kMaxOfShape);
  if (room) kept.sample = copy_of(sample);
  return kept;
}

void SampleKeeper::add(Kept kept) {
  ++calls_;
  if (!shapes_.contains(kept.signature) && shapes_.size() >= kMaxShapes) return;
  Shape& shape = shapes_[kept.signature];
  ++shape.calls;
  if (kept.sample.args.empty() && kept.sample.kwargs.empty()) return;
  ++shape.kept;
  samples_.push_back(std::move(kept.sample));
}

std::vector<Sample> SampleKeeper::samples() const {
  return samples_;
}

int64_t SampleKeeper::calls_of_shape(const Sample& sample) const {
  const auto found = shapes_.find(signature_of(sample));
  return found != shapes_.end() ? found->second.calls : 0;
}

int64_t SampleKeeper::weight_of(const Sample& sample) const {
  const auto found = shapes_.find(signature_of(sample));
  if (found == shapes_.end() || found->second.kept == 0) return 1;
  return std::max<int64_t>(1, found->second.calls / found->second.kept);
}

}  // namespace halftone::aq
