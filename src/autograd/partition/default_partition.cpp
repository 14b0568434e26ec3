// default_partition(): saves what backward reads, and computes only views again.
#include "autograd/partition/default_choice.h"
#include "autograd/partition/saved_views.h"
#include "autograd/partition/split.h"
#include "autograd/partition/units.h"

namespace halftone {
namespace partition {
namespace {

// Where the trace ran it: in the backward pass only what needs a tangent, or stands after the first backward
// node and no result needs it.
bool runs_in_forward(const Unit& unit) {
  return unit.is_forward || (!unit.needs_tangent && !unit.in_backward_part);
}

bool backward_reads(const Unit& unit, const JointUnits& units) {
  if (unit.is_gradient) return true;
  for (const size_t user : unit.users) {
    if (!runs_in_forward(units[user])) return true;
  }
  return false;
}

}  // namespace

ValueSet saved_by_default(const JointUnits& units) {
  ValueSet saved;
  std::vector<bool> wanted(units.size(), false);
  // From the back: what cannot be saved (lists, numbers) is computed again from what can.
  for (size_t i = units.size(); i-- > 0;) {
    const Unit& unit = units[i];
    if (!runs_in_forward(unit) || !(wanted[i] || backward_reads(unit, units))) continue;
    if (unit.is_saveable()) {
      saved.insert(unit.value);
    } else {
      for (const size_t input : unit.inputs) wanted[input] = true;
    }
  }
  return without_needless_views(saved);
}

}  // namespace partition

PartitionedGraphs default_partition(const JointGraph& joint) {
  const partition::JointUnits units(joint);
  return partition::split_joint(joint, partition::saved_by_default(units), units.backward_side_effects());
}

}  // namespace halftone
