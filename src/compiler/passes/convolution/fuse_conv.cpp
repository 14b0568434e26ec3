// fuse_conv: convolutions in float32 with constant weights become halftone::conv, plain and transposed ones,
// in one to three dimensions. Its result has the channels last; a copy behind it restores the strides that
// the graph promises, and channels_last, the pass after this one, moves those copies to the nodes that need
// them. Zeros that were padded in front of a convolution become its own padding.
#include "compiler/passes/alias.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "graph/rewrite/edit.h"

namespace halftone::compiler {
namespace {

constexpr std::array<std::string_view, 12> kConvolutions = {"aten::conv1d",
                                                            "aten::conv2d",
                                                            "aten::conv3d",
                                                            "aten::conv1d.padding",
                                                            "aten::conv2d.padding",
                                                            "aten::conv3d.padding",
                                                            "aten::convolution",
                                                            "aten::_convolution",
                                                            "aten::_convolution.deprecated",
                                                            "aten::conv_transpose1d",
                                                            "aten::conv_transpose2d.input",
                                                            "aten::conv_transpose3d.input"};

using Integers = std::vector<int64_t>;

struct ConvCall {
  Value* x = nullptr;
  Integers stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
};

/// One number for each dimension; `otherwise` if nothing is given.
std::optional<Integers> try_per_dimension(const Node& node, std::string_view name, size_t dims,
                                          int64_t otherwise) {
  if (is_absent(node, name)) return Integers(dims, otherwise);
  auto found = try_integers(node, name);
  if (found && found->size() == 1) found->resize(dims, found->front());
  return found && found->size() == dims ? found : std::nullopt;
}

/// "same" and "valid" as numbers, those in front and those behind.
std::optional<Integers> try_named_padding(const Node& node, const Integers& kernel,
                                          const Integers& dilation) {
  const auto name = try_text(node, "padding");
  if (name == "valid") return Integers(kernel.size(), 0);
  if (name != "same") return std::nullopt;
  Integers front, behind;
  for (size_t d = 0; d < kernel.size(); ++d) {
    const int64_t all = (kernel[d] - 1) * dilation[d];
    front.push_back(all / 2);
    behind.push_back(all - all / 2);
  }
  if (front != behind) front.insert(front.end(), behind.begin(), behind.end());
  return front;
}

std::optional<ConvCall> try_call(const Node& node, const at::Tensor& weight) {
  if (!weight.defined() || weight.dim() < 3 || weight.dim() > 5) return std::nullopt;
  ConvCall call;
  call.x = try_tensor(node, "input");
  const size_t dims = static_cast<size_t>(weight.dim()) - 2;
  const Integers kernel(weight.sizes().begin() + 2, weight.sizes().end());
  const auto stride = try_per_dimension(node, "stride", dims, 1),
             dilation = try_per_dimension(node, "dilation", dims, 1);
  if (!stride || !dilation) return std::nullopt;
  const bool named = node.target().ends_with(".padding");
  const auto padding =
      named ? try_named_padding(node, kernel, *dilation) : try_per_dimension(node, "padding", dims, 0);
  const auto groups = try_number(node, "groups");
  call.transposed = node.target().starts_with("aten::conv_transpose");
  if (node.target().find("convolution") != std::string::npos) {
    const auto flag = try_flag(node, "transposed");
    if (!flag) return std::nullopt;
    call.transposed = *flag;
  }
  const auto output_padding =
      call.transposed ? try_per_dimension(node, "output_padding", dims, 0) : std::optional(Integers(dims, 0));
  if (!padding || !groups || !output_padding) return std::nullopt;
  call.stride = *stride;
  call.padding = *padding;
  call.dilation = *dilation;
  call.output_padding = *output_padding;
  call.groups = static_cast<int64_t>(*groups);
  return call;
}

/// Takes the zeros in front of the convolution's input into its padding.
void absorb_zeros(ConvCall& call, const AliasSets& aliases) {
  Node* pad = try_producer(call.x, {"aten::constant_pad_nd", "aten::pad"});
  if (pad == nullptr || call.transposed) return;
  Value* inner = try_tensor(*pad, "self");
  if (inner == nullptr || aliases.is_written(inner) || !is_float(inner)) return;
  const bool constant = pad->is("aten::constant_pad_nd") || try_text(*pad, "mode") == "constant";
  const bool zero = is_absent(*pad, "value") || try_number(*pad, "value") == 0.0;
  const auto pads = try_integers(*pad, "pad");
  const size_t dims = call.stride.size();
  if (!constant || !zero || !pads || pads->size() > 2 * dims) return;
  if (std::any_of(pads->begin(), pads->end(), [](int64_t each) { return each < 0; })) return;
  if (call.padding.size() == dims)
    call.padding.insert(call.padding.end(), call.padding.begin(), call.padding.begin() + dims);
  for (size_t i = 0; i + 1 < pads->size(); i += 2) {  // the last dimension comes first
    const size_t d = dims - 1 - i / 2;
    call.padding[d] += (*pads)[i];
    call.padding[dims + d] += (*pads)[i + 1];
  }
  if (std::equal(call.padding.begin(), call.padding.begin() + dims, call.padding.begin() + dims))
    call.padding.resize(dims);
  call.x = inner;
}

Argument list_of(const Integers& numbers) {
  return Argument::List(numbers.begin(), numbers.end());
}

std::vector<NamedArgument> conv_inputs(const Node& node, const ConvCall& call) {
  return {{"x", call.x},
          {"weight", operand(node, "weight")},
          {"bias", operand(node, "bias")},
          {"residual", {}},
          {"stride", list_of(call.stride)},
          {"padding", list_of(call.padding)},
          {"dilation", list_of(call.dilation)},
          {"transposed", call.transposed},
          {"output_padding", list_of(call.output_padding)},
          {"groups", call.groups},
          {"activation", "none"}};
}

class ConvFuser {
 public:
  explicit ConvFuser(PassContext& context)
      : context_(context), constants_(context), aliases_(context.graph) {}

  bool run() {
    size_t fused = 0;
    for (Node* node : snapshot(context_.graph)) {
      if (node->op() == nullptr || !is_one_of(*node, kConvolutions)) continue;
      std::string why = refusal(*node);
      if (why.empty() && !try_fuse(*node)) why = "its numbers are computed";
      if (why.empty()) {
        ++fused;
      } else {
        context_.note("%{} stays {}: {}", node->output()->name(), node->target(), why);
      }
    }
    if (fused > 0) context_.note("{}", counted(fused, "convolution"));
    return fused > 0;
  }

 private:
  // Why it cannot be fused, or "".
  std::string refusal(const Node& node) const {
    const Value *x = try_tensor(node, "input"), *weight = try_tensor(node, "weight");
    if (!is_float(x) || !is_float(weight) || !is_float(node.output())) return "it is not float32";
    if (!constants_.holds(weight)) return "its weight is computed or written";
    if (rank(x) < 3 || rank(x) > 5 || rank(x) != rank(weight)) return "its input is no batch";
    const Value* bias = try_tensor(node, "bias");
    if (!is_absent(node, "bias") && (!is_float(bias) || rank(bias) != 1 || !constants_.holds(bias)))
      return "its bias is no constant row of float32";
    if (aliases_.is_written(x) || aliases_.is_written(node.output())) return "its input or result is written";
    if (!is_contiguous(node.output()) && !is_channels_last(node.output()))
      return "its result is neither contiguous nor has channels last";
    return "";
  }

  bool try_fuse(Node& node) {
    auto call = try_call(node, constants_.tensor(try_tensor(node, "weight")));
    if (!call) return false;
    absorb_zeros(*call, aliases_);
    Value* y = node.output();
    const TensorMeta last = channels_last_meta(at::kFloat, y->meta()->sizes);
    if (is_channels_last(y)) {
      replace_value(y, &node, "halftone::conv", conv_inputs(node, *call), {}, node.source());
      return true;
    }
    Node* conv = context_.graph.insert(&node, "halftone::conv", conv_inputs(node, *call),
                                       {{y->name() + "_last", ValueType::kTensor, last}}, node.source());
    replace_value(y, &node, "aten::contiguous", {{"self", conv->output()}}, {}, node.source());
    return true;
  }

  PassContext& context_;
  Constants constants_;
  AliasSets aliases_;
};

}  // namespace

bool rewrite_fuse_conv(PassContext& context) {
  return ConvFuser(context).run();
}

}  // namespace halftone::compiler
