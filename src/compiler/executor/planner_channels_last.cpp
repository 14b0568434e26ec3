// Planner: memory of channels-last results, either their own or directly where a cat of channels
// wants them.
#include <algorithm>

#include "compiler/executor/channels_last.h"
#include "compiler/executor/planner.h"
#include "graph/operators/op_traits.h"

namespace halftone::compiler {

namespace {

bool is_float_image(const Value* value, size_t rank) {
  return value != nullptr && value->meta() && value->meta()->dtype == at::kFloat &&
         value->meta()->sizes.size() == rank;
}

}  // namespace

/// The channel at which the value begins in the cat's result; nothing if that is not a cat of channels.
std::optional<int64_t> Planner::channel_in_cat(const Node& cat, const Value* value) const {
  const Argument* parts = cat.try_input("tensors");
  const size_t rank = value->meta()->sizes.size();
  if (!cat.is("aten::cat") || !parts || !parts->list() || !is_float_image(cat.output(), rank))
    return std::nullopt;
  const int64_t dim = constant(cat, "dim").toInt();
  if ((dim < 0 ? dim + static_cast<int64_t>(rank) : dim) != 1) return std::nullopt;
  if (dense_strides_of(cat.output()) != dense_channels_last(sizes_of(cat.output()))) return std::nullopt;
  std::optional<int64_t> found;
  int64_t channel = 0;
  for (const Argument& part : *parts->list()) {
    if (!is_float_image(part.value(), rank)) return std::nullopt;
    if (part.value() == value && !found) found = channel;
    channel += sizes_of(part.value())[1];
  }
  return found;
}

Slot Planner::define_channels_last(const Value* value, c10::IntArrayRef sizes) {
  const auto& users = value->users();
  const bool slices = std::all_of(users.begin(), users.end(),
                                  [](const Node* user) { return has_trait(*user, OpTrait::kReadsStrided); });
  for (const Node* user : users) {
    const auto channel = slices ? channel_in_cat(*user, value) : std::nullopt;
    if (!channel) continue;
    // The cat itself is compared with what it declares when its turn comes.
    std::vector<int64_t> whole = sizes_of(user->output()), beside = whole;
    beside[1] = sizes[1];
    if (sizes != beside || *channel + sizes[1] > whole[1]) continue;
    const auto [place, fresh] = cats_.try_emplace(user->output());
    if (fresh) place->second = new_slot(Buffer::Kind::kArena, at::kFloat, whole, dense_channels_last(whole));
    touch(place->second, next_step());
    const Slot slot{place->second.buffer, place->second.meta.narrow(1, *channel, sizes[1])};
    values_[value].data = slot;
    return slot;
  }
  define_strided(value, at::kFloat, sizes, dense_channels_last(sizes));
  return *tensor_of(value);
}

bool Planner::try_define_cat(const Value* value) {
  const auto found = cats_.find(value);
  if (found == cats_.end()) return false;
  values_[value].data = found->second;
  return true;
}

}  // namespace halftone::compiler
