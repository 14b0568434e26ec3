// Results that are written where the session keeps their old content.
#include "compiler/executor/planner.h"

namespace halftone::compiler {

bool Planner::try_define_over_state(const Node& node, const Value* output, const Value* state) {
  const Slot* slot = tensor_of(state);
  if (writes_in_place_ || slot == nullptr) return false;
  const Buffer& buffer = plan_->buffers[static_cast<size_t>(slot->buffer)];
  if (buffer.kind != Buffer::Kind::kInput || !slot->meta.is_contiguous()) return false;
  if (!state_readers_) state_readers_ = std::make_unique<const StateReaders>(graph_);
  if (!state_readers_->is_replaced_by(state, node, output)) return false;
  // Two names of one tensor: the other one's readers are not in the same set.
  const at::Tensor& tensor = inputs_.values[buffer.index].toTensor();
  for (size_t i = 0; i < inputs_.values.size(); ++i) {
    const c10::IValue& other = inputs_.values[i];
    const bool user = graph_.inputs()[i].kind == InputKind::kUser;  // the run looks at those
    if (i != buffer.index && !user && other.isTensor() && other.toTensor().is_alias_of(tensor)) return false;
  }
  plan_->written_states.push_back(slot->buffer);
  values_[output].data = *slot;
  return true;
}

}  // namespace halftone::compiler
