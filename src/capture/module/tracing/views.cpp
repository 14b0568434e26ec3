#include "capture/module/tracing/views.h"

#include <algorithm>

#include "base/errors.h"
#include "graph/operators/op_traits.h"

namespace halftone {
namespace {

Argument int_list(const std::vector<int64_t>& numbers) {
  return Argument::List(numbers.begin(), numbers.end());
}

bool same_but(const std::vector<int64_t>& a, const std::vector<int64_t>& b, size_t except) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (i != except && a[i] != b[i]) return false;
  }
  return true;
}

/// A run of one dimension, where that is all the view does.
std::optional<ViewCall> as_slice(Value* parent, const Geometry& from, const Geometry& to) {
  if (from.sizes.size() != to.sizes.size() || from.strides != to.strides) return std::nullopt;
  for (size_t dim = 0; dim < from.sizes.size(); ++dim) {
    if (from.sizes[dim] == to.sizes[dim] || !same_but(from.sizes, to.sizes, dim)) continue;
    const int64_t stride = from.strides[dim];
    const int64_t shift = to.offset - from.offset;
    if (stride <= 0 || shift < 0 || shift % stride != 0) return std::nullopt;
    const int64_t start = shift / stride;
    if (start + to.sizes[dim] > from.sizes[dim]) return std::nullopt;
    return ViewCall{"aten::slice.Tensor",
                    {{"self", parent},
                     {"dim", static_cast<int64_t>(dim)},
                     {"start", start},
                     {"end", start + to.sizes[dim]}}};
  }
  return std::nullopt;
}

/// One index of one dimension.
std::optional<ViewCall> as_selection(Value* parent, const Geometry& from, const Geometry& to) {
  if (from.sizes.size() != to.sizes.size() + 1) return std::nullopt;
  for (size_t dim = 0; dim < from.sizes.size(); ++dim) {
    std::vector<int64_t> sizes = from.sizes, strides = from.strides;
    sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(dim));
    strides.erase(strides.begin() + static_cast<ptrdiff_t>(dim));
    const int64_t stride = from.strides[dim], shift = to.offset - from.offset;
    if (sizes != to.sizes || strides != to.strides || stride <= 0 || shift < 0 || shift % stride != 0)
      continue;
    if (shift / stride >= from.sizes[dim]) continue;
    return ViewCall{"aten::select.int",
                    {{"self", parent}, {"dim", static_cast<int64_t>(dim)}, {"index", shift / stride}}};
  }
  return std::nullopt;
}

/// For each dimension of the view, which one of the parent it is; the other way round is the inverse.
std::vector<int64_t> inverse_permutation(const Geometry& from, const Geometry& to) {
  std::vector<bool> taken(to.sizes.size(), false);
  std::vector<int64_t> order;
  for (size_t i = 0; i < from.sizes.size(); ++i) {
    for (size_t k = 0; k < to.sizes.size(); ++k) {
      if (taken[k] || from.sizes[i] != to.sizes[k] || from.strides[i] != to.strides[k]) continue;
      taken[k] = true;
      order.push_back(static_cast<int64_t>(k));
      break;
    }
  }
  return order;
}

std::vector<NamedArgument> scatter_inputs(const ViewCall& view, Value* parent, Value* child) {
  std::vector<NamedArgument> inputs = {{"self", parent}, {"src", child}};
  for (size_t i = 0; i < view.inputs.size(); ++i) {
    if (i != view.self) inputs.push_back(view.inputs[i]);
  }
  return inputs;
}

}  // namespace

ViewCall strided_view(Value* parent, const Geometry& parent_geometry, const Geometry& geometry) {
  if (parent_geometry.offset != 0 || parent_geometry.dtype != geometry.dtype) {
    fail(ErrorCode::kUnsupported, "a view of %{} that no operator made", parent->name());
  }
  return {"aten::as_strided",
          {{"self", parent},
           {"size", int_list(geometry.sizes)},
           {"stride", int_list(geometry.strides)},
           {"storage_offset", geometry.offset}}};
}

ViewCall canonical_view(std::string_view target, const std::vector<NamedArgument>& inputs, Value* parent,
                        const Geometry& parent_geometry, const Geometry& geometry) {
  ViewCall view{std::string(target), inputs};
  bool direct = false;
  for (size_t i = 0; i < inputs.size() && !direct; ++i) {
    if (inputs[i].value.value() == parent) view.self = i, direct = true;
  }
  const bool known = target == "aten::select.int" || target == "aten::slice.Tensor" ||
                     target == "aten::diagonal" ||
                     has_trait(target, OpTrait::kKeepsOrder | OpTrait::kPermutation);
  if (known && direct) return view;
  if (geometry == parent_geometry) return {"aten::alias", {{"self", parent}}};
  if (auto slice = as_slice(parent, parent_geometry, geometry)) return *slice;
  if (auto selection = as_selection(parent, parent_geometry, geometry)) return *selection;
  return view;
}

Value* replay_view(GraphRecorder& recorder, const ViewCall& view, Value* parent) {
  if (view.target == "aten::alias") return parent;
  std::vector<NamedArgument> inputs = view.inputs;
  inputs.at(view.self).value = parent;
  // The new base may have other strides than the old one had.
  const bool reshape = view.target == "aten::view";
  if (reshape) inputs = {{"self", parent}, {"shape", view.inputs.at(1 - view.self).value}};
  return recorder.derive(reshape ? "aten::reshape" : view.target, std::move(inputs));
}

Value* undo_view(GraphRecorder& recorder, const ViewCall& view, const Geometry& parent_geometry,
                 const Geometry& geometry, Value* parent, Value* child) {
  if (geometry == parent_geometry) return child;
  if (view.target == "aten::select.int")
    return recorder.derive("aten::select_scatter", scatter_inputs(view, parent, child));
  if (view.target == "aten::slice.Tensor")
    return recorder.derive("aten::slice_scatter", scatter_inputs(view, parent, child));
  if (view.target == "aten::diagonal")
    return recorder.derive("aten::diagonal_scatter", scatter_inputs(view, parent, child));
  if (has_trait(view.target, OpTrait::kKeepsOrder))
    return recorder.derive("aten::reshape", {{"self", child}, {"shape", int_list(parent_geometry.sizes)}});
  if (has_trait(view.target, OpTrait::kPermutation)) {
    const std::vector<int64_t> order = inverse_permutation(parent_geometry, geometry);
    if (order.size() == geometry.sizes.size())
      return recorder.derive("aten::permute", {{"self", child}, {"dims", int_list(order)}});
  }
  // Only if the parent lies in memory as it did while it was traced.
  bool same_layout = parent->meta()->strides.size() == parent_geometry.strides.size();
  for (size_t i = 0; same_layout && i < parent_geometry.strides.size(); ++i)
    same_layout = parent->meta()->strides[i].as_constant() == parent_geometry.strides[i];
  if (!same_layout) fail(ErrorCode::kUnsupported, "a write through {}", view.target);
  std::vector<NamedArgument> inputs = strided_view(parent, parent_geometry, geometry).inputs;
  inputs.insert(inputs.begin() + 1, {"src", child});
  return recorder.derive("aten::as_strided_scatter", std::move(inputs));
}

}  // namespace halftone
