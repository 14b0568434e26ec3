#include "compat/quantization_mark.h"

#include <torch/nn/module.h>

#include <map>

#include "base/errors.h"

namespace halftone::baseline {
namespace {

/// A model without keeping it alive. The owner stays distinct from all later ones while this lives; the
/// pointer tells apart parts of one owner.
struct ModelKey {
  std::weak_ptr<const void> owner;
  const void* model = nullptr;
  bool operator<(const ModelKey& other) const {
    if (owner.owner_before(other.owner)) return true;
    if (other.owner.owner_before(owner)) return false;
    return std::less<>()(model, other.model);
  }
};

}  // namespace

std::shared_ptr<QuantizationMark> mark_of(const ModelSource& model) {
  const std::shared_ptr<const void> owner =
      model.graph ? std::shared_ptr<const void>(model.graph) : std::shared_ptr<const void>(model.module);
  if (!owner) fail(ErrorCode::kInvalidArgument, "optimize_ctx: there is no model");
  static std::mutex mutex;
  static auto& marks = *new std::map<ModelKey, std::shared_ptr<QuantizationMark>>();  // outlives all statics
  const std::lock_guard lock(mutex);
  std::erase_if(marks, [](const auto& entry) { return entry.first.owner.expired(); });
  auto& mark = marks[{owner, owner.get()}];
  if (!mark) mark = std::make_shared<QuantizationMark>();
  return mark;
}

}  // namespace halftone::baseline
