// fold_zero_embedding: a table read with nothing but zeros (the token types of a single segment) gives its
// first row everywhere. If that is added to a tensor of the same sizes, the row itself is added.
#include <ATen/Functions.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "compiler/passes/alias.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

constexpr std::array<std::string_view, 4> kZeros = {"aten::zeros_like", "aten::zeros", "aten::new_zeros",
                                                    "aten::zero"};
constexpr std::array<std::string_view, 3> kFills = {"aten::full", "aten::full_like", "aten::new_full"};
// Give some elements of `self`, or all, in another order, shape or integer type.
constexpr std::array<std::string_view, 16> kKeeps = {
    "aten::slice.Tensor",  "aten::select.int", "aten::expand",   "aten::view",
    "aten::reshape",       "aten::unsqueeze",  "aten::squeeze",  "aten::squeeze.dim",
    "aten::contiguous",    "aten::clone",      "aten::alias",    "aten::detach",
    "aten::transpose.int", "aten::_to_copy",   "aten::to.dtype", "aten::lift_fresh_copy"};

class ZeroEmbeddings {
 public:
  explicit ZeroEmbeddings(PassContext& context)
      : context_(context), constants_(context), aliases_(context.graph) {}

  bool run() {
    size_t folded = 0;
    for (Node* node : snapshot(context_.graph)) {
      if (!node->is("aten::add.Tensor") || aliases_.is_written(node->output())) continue;
      for (const auto& [row_side, other_side] : {std::pair{"other", "self"}, {"self", "other"}}) {
        if (!try_fold(*node, row_side, other_side)) continue;
        ++folded;
        break;
      }
    }
    if (folded > 0) context_.note("{} with the first row of a table", counted(folded, "sum"));
    return folded > 0;
  }

 private:
  bool try_fold(Node& sum, const char* row_side, const char* other_side) {
    Value *read = try_tensor(sum, row_side), *other = try_tensor(sum, other_side);
    const Node* embedding = try_producer(read, {"aten::embedding"});
    if (embedding == nullptr || other == nullptr || other == read) return false;
    // The sum must keep its sizes and its layout without the operand that is taken away.
    const bool same_place =
        same_sizes(other, sum.output()) && is_contiguous(other) && is_contiguous(sum.output());
    if (!same_place || !is_float(other) || !is_float(read) || aliases_.is_written(read)) return false;
    const Value* table = try_tensor(*embedding, "weight");
    const at::Tensor rows = table != nullptr ? constants_.tensor(table) : at::Tensor();
    if (!rows.defined() || rows.dim() != 2 || rows.size(0) == 0) return false;
    if (!is_zero(try_tensor(*embedding, "indices"))) return false;
    Value*& row = rows_[table];
    if (row == nullptr) row = constants_.add(table->name() + "_row", rows.select(0, 0).clone());
    set_operand(sum, row_side, row);
    return true;
  }

  bool is_zero(const Value* value) const {
    while (value != nullptr && !aliases_.is_written(value)) {
      if (const at::Tensor known = constants_.tensor(value); known.defined())
        return known.numel() == 0 || known.eq(0).all().item<bool>();
      const Node* node = value->producer();
      if (node == nullptr || node->op() == nullptr) return false;
      if (is_one_of(*node, kZeros)) return true;
      if (is_one_of(*node, kFills)) return try_number(*node, "fill_value") == 0.0;
      if (!is_one_of(*node, kKeeps)) return false;
      value = try_tensor(*node, "self");
    }
    return false;
  }

  PassContext& context_;
  Constants constants_;
  AliasSets aliases_;
  std::map<const Value*, Value*> rows_;
};

}  // namespace

bool rewrite_fold_zero_embedding(PassContext& context) {
  return ZeroEmbeddings(context).run();
}

}  // namespace halftone::compiler
