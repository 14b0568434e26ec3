#include "tune/autoquant/sample_keeper.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>

#include "capture/module/trace.h"
#include "tune/sample_layout.h"

namespace halftone::aq {
namespace {

constexpr size_t kMostSamples = 32;
constexpr int64_t kMostOfShape = 5;
constexpr size_t kMostShapes = 64;

std::vector<int64_t> signature_of_call(const Sample& sample) {
  std::vector<c10::IValue> leaves;
  tree_of(c10::ivalue::Tuple::create(sample.args), leaves);
  for (const auto& [name, value] : sample.kwargs) tree_of(value, leaves);
  std::vector<int64_t> signature;
  for (const c10::IValue& leaf : leaves) {
    if (!leaf.isTensor()) continue;
    const at::Tensor& tensor = leaf.toTensor();
    signature.push_back(static_cast<int64_t>(tensor.scalar_type()));
    signature.push_back(tensor.dim());
    signature.insert(signature.end(), tensor.sizes().begin(), tensor.sizes().end());
  }
  return signature;
}

}  // namespace

SampleKeeper::Kept SampleKeeper::copy(const Sample& sample) const {
  Kept kept{signature_of_call(sample), {}};
  const auto known = shapes_.find(kept.signature);
  const bool room =
      samples_.size() < kMostSamples && (known == shapes_.end() || known->second.kept < kMostOfShape);
  if (room) kept.sample = copy_of(sample);
  return kept;
}

void SampleKeeper::add(Kept kept) {
  ++calls_;
  if (!shapes_.contains(kept.signature) && shapes_.size() >= kMostShapes) return;
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
  const auto found = shapes_.find(signature_of_call(sample));
  return found != shapes_.end() ? found->second.calls : 0;
}

int64_t SampleKeeper::weight_of(const Sample& sample) const {
  const auto found = shapes_.find(signature_of_call(sample));
  if (found == shapes_.end() || found->second.kept == 0) return 1;
  return std::max<int64_t>(1, found->second.calls / found->second.kept);
}

}  // namespace halftone::aq
