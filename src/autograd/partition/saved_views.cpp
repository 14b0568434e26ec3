#include "autograd/partition/saved_views.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "autograd/partition/bytes.h"
#include "autograd/partition/operator_classes.h"

namespace halftone::partition {
namespace {

using Members = std::vector<const Value*>;

bool base_suffices(const Value* base, const Members& members) {
  if (base->producer() == nullptr) return true;
  if (std::find(members.begin(), members.end(), base) != members.end()) return true;
  int64_t together = 0;
  for (const Value* member : members) {
    // The base is never wrong to save, only perhaps large.
    if (!try_element_count(*member) || !try_element_count(*base)) return true;
    together += bytes_of(*member);
  }
  return together >= bytes_of(*base);
}

bool is_view_of_another(const Value* value, const ValueSet& saved) {
  while (value->producer() != nullptr) {
    value = viewed_operand(*value->producer());
    if (value == nullptr) return false;
    if (saved.contains(value)) return true;
  }
  return false;
}

}  // namespace

ValueSet without_needless_views(const ValueSet& saved) {
  std::unordered_map<const Value*, Members> by_storage;
  for (const Value* value : saved) by_storage[storage_of(value)].push_back(value);
  ValueSet kept;
  for (const auto& [base, members] : by_storage) {
    if (members.size() == 1 && members.front() == base) {
      kept.insert(base);
    } else if (base_suffices(base, members)) {
      kept.insert(base);
    } else {
      for (const Value* member : members) {
        if (!is_view_of_another(member, saved)) kept.insert(member);
      }
    }
  }
  return kept;
}

}  // namespace halftone::partition
