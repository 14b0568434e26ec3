// Views of traced tensors: how one is made again after its base changed, and how a write to it reaches the
// base.
#pragma once

#include <string>
#include <vector>

#include "capture/module/tracing/geometry.h"
#include "capture/module/tracing/graph_recorder.h"

namespace halftone {

/// A call that gives a view of its operand `self`.
struct ViewCall {
  std::string target;
  std::vector<NamedArgument> inputs;
  size_t self = 0;  ///< which of the inputs is the viewed tensor
};

/// The call for one view. Elements of lists (chunk, split, unbind) become the slice or the selection that
/// they are.
ViewCall canonical_view(std::string_view target, const std::vector<NamedArgument>& inputs, Value* parent,
                        const Geometry& parent_geometry, const Geometry& geometry);

/// aten::as_strided; kUnsupported if the parent does not begin at its storage's first element.
ViewCall strided_view(Value* parent, const Geometry& parent_geometry, const Geometry& geometry);

/// The view of `parent`, which has new content.
Value* replay_view(GraphRecorder& recorder, const ViewCall& view, Value* parent);

/// `parent` with `child` written over what the view shows of it.
Value* undo_view(GraphRecorder& recorder, const ViewCall& view, const Geometry& parent_geometry,
                 const Geometry& geometry, Value* parent, Value* child);

}  // namespace halftone
