#include "quant/static_int8/movement.h"

#include <set>

namespace halftone::static_int8 {

bool moves_elements(const Node& node) {
  static const std::set<std::string_view> targets = {"aten::alias",
                                                     "aten::detach",
                                                     "aten::contiguous",
                                                     "aten::clone",
                                                     "aten::view",
                                                     "aten::_unsafe_view",
                                                     "aten::reshape",
                                                     "aten::flatten.using_ints",
                                                     "aten::unflatten.int",
                                                     "aten::squeeze",
                                                     "aten::squeeze.dim",
                                                     "aten::squeeze.dims",
                                                     "aten::unsqueeze",
                                                     "aten::permute",
                                                     "aten::transpose.int",
                                                     "aten::t",
                                                     "aten::movedim.int",
                                                     "aten::slice.Tensor",
                                                     "aten::select.int",
                                                     "aten::narrow",
                                                     "aten::expand",
                                                     "aten::repeat",
                                                     "aten::repeat_interleave.self_int",
                                                     "aten::tile",
                                                     "aten::unbind.int",
                                                     "aten::index_select",
                                                     "aten::unfold",
                                                     "aten::flip",
                                                     "aten::roll",
                                                     "aten::pixel_shuffle",
                                                     "aten::pixel_unshuffle",
                                                     "aten::channel_shuffle",
                                                     "aten::upsample_nearest1d",
                                                     "aten::upsample_nearest1d.vec",
                                                     "aten::upsample_nearest2d",
                                                     "aten::upsample_nearest2d.vec",
                                                     "aten::upsample_nearest3d",
                                                     "aten::upsample_nearest3d.vec",
                                                     "aten::constant_pad_nd",
                                                     "aten::pad",
                                                     "aten::cat",
                                                     "aten::stack",
                                                     "aten::split.Tensor",
                                                     "aten::split_with_sizes",
                                                     "aten::chunk",
                                                     "aten::max_pool1d",
                                                     "aten::max_pool2d",
                                                     "aten::max_pool3d",
                                                     "aten::max_pool2d_with_indices",
                                                     "aten::max_pool3d_with_indices",
                                                     "halftone::int8_max_pool"};
  if (!targets.contains(node.target())) return false;
  return node.outputs().size() == 1 || node.output(1)->users().empty();  // indices are no moved elements
}

std::string_view moved_operand(const Node& node) {
  if (node.is("aten::cat") || node.is("aten::stack")) return "tensors";
  if (node.is("halftone::int8_max_pool")) return "x";
  return node.try_input("input") != nullptr ? "input" : "self";
}

}  // namespace halftone::static_int8
