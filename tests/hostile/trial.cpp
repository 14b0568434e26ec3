#include "trial.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoint/container/ht_file.h"
#include "halftone/base/error.h"
#include "halftone/capture/capture.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/compile/compile.h"

namespace halftone::hostile {
namespace {

using Values = std::vector<c10::IValue>;

c10::IValue copied(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() ? c10::IValue(value.toTensor().clone()) : value;
}

Values copied(const Values& values) {
  Values copies;
  for (const c10::IValue& value : values) copies.push_back(copied(value));
  return copies;
}

/// Results, or the message of a halftone::Error; other exceptions go on.
struct Answer {
  std::optional<Values> values;
  std::string error;
};

Answer answer_of(const std::function<Values()>& call) {
  Values values;
  try {
    at::manual_seed(1);
    values = call();
  } catch (const Error& error) {
    return {std::nullopt, error.what()};
  }
  try {
    return {copied(values), ""};
  } catch (const c10::Error&) {
    return {std::nullopt, "no memory for a copy of the answer"};  // the trial's own
  }
}

/// A call's results. Of a model with state also those of a second call, and the state that it leaves.
Values results_of(Session&& session, const Values& inputs) {
  Values values = session.run(copied(inputs));
  const std::vector<std::string> states = session.state_names();
  if (states.empty()) return values;
  values = copied(values);
  const Values second = session.run(copied(inputs));
  values.insert(values.end(), second.begin(), second.end());
  for (const std::string& name : states) values.emplace_back(session.state(name));
  return values;
}

/// Random numbers need not come in the same order.
bool is_random(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->op() && node->op()->hasTag(at::Tag::nondeterministic_seeded)) return true;
    for (const NamedArgument& input : node->inputs()) {
      const auto* inner = input.value.get_if<std::shared_ptr<Graph>>();
      if (inner && is_random(**inner)) return true;
    }
  }
  return false;
}

/// Sums of such numbers overflow or cancel in one order of summation and not in another.
bool is_extreme(const at::Tensor& tensor) {
  if (!tensor.is_floating_point() || tensor.numel() == 0) return false;
  return !(tensor.to(at::kDouble).abs().max().item<double>() < 1e12);
}

/// Scales, factors and zero points in the graph's text: differences of large numbers are all rounding.
bool has_extreme_constants(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->op() == nullptr) continue;
    for (const c10::Argument& expected : node->op()->schema().arguments()) {
      const auto kind = expected.type()->kind();
      const Argument* given = node->try_input(expected.name());
      const bool zero_point = expected.name().find("zero_point") != std::string::npos;
      const bool number = kind == c10::TypeKind::FloatType || kind == c10::TypeKind::NumberType;
      if (given == nullptr || (!number && !zero_point)) continue;
      const auto* real = given->get_if<double>();
      const auto* integer = given->get_if<int64_t>();
      const double value = std::abs(real ? *real : integer ? static_cast<double>(*integer) : 0);
      if (!(value < (zero_point ? 1e6 : 1e12)) || (value > 0 && value < 1e-12)) return true;
    }
  }
  return false;
}

/// ATen's gelu gives -0 for numbers below about -5.5, ours what it is, -1e-8 and less: a logarithm of the one
/// is infinite, of the other NaN; a root of the one is -0, of the other NaN.
bool takes_logarithms_or_roots_of_gelu(const Graph& graph) {
  bool gelu = false, breaks_at_zero = false;
  for (const auto& node : graph.nodes()) {
    gelu = gelu || node->target().find("gelu") != std::string::npos;
    for (const std::string_view name : {"aten::log", "aten::sqrt", "aten::rsqrt"})
      breaks_at_zero = breaks_at_zero || node->target().starts_with(name);
  }
  return gelu && breaks_at_zero;
}

bool has_extreme_numbers(const GraphModule& module, const Values& inputs) {
  if (has_extreme_constants(module.graph())) return true;
  for (const auto& [name, tensor] : *module.tensors()) {
    if (is_extreme(tensor)) return true;
  }
  return std::any_of(inputs.begin(), inputs.end(), [](const c10::IValue& input) {
    return input.isTensor() && input.toTensor().defined() && is_extreme(input.toTensor());
  });
}

/// The same model without unused nodes, which a compiled model does not run; and with reshape
/// for view: what a file says of strides decides how a compiled model lays its values out, and views of them
/// may be possible that are none in the interpreter's layout. The elements are the same.
std::shared_ptr<GraphModule> as_compiled(const GraphModule& module) {
  auto graph = module.graph().clone();
  graph->erase_dead_nodes();
  std::vector<Node*> views;
  for (const auto& node : graph->nodes()) {
    if (node->is("aten::view")) views.push_back(node.get());
  }
  for (Node* view : views) {
    const Value* old_value = view->output();
    OutputSpec spec{.name = "", .type = old_value->type(), .meta = old_value->meta()};
    const std::vector<NamedArgument> inputs = {{"self", view->input(0)}, {"shape", view->input(1)}};
    Value* made = graph->insert(view, "aten::reshape", inputs, {std::move(spec)}, view->source())->output();
    graph->replace_all_uses(view->output(), made);
    graph->erase(view);
  }
  auto copy = std::make_shared<GraphModule>(std::move(graph), *module.tensors(), module.call_spec());
  copy->ranges = module.ranges;
  copy->guards = module.guards;
  copy->name = module.name;
  return copy;
}

/// Empty if equal: dtype, sizes, NaN at the same places, numbers within the kernels' rounding.
std::string difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type())
    return fmt::format("dtype {} instead of {}", toString(b.scalar_type()), toString(a.scalar_type()));
  if (a.sizes() != b.sizes())
    return fmt::format("sizes [{}] instead of [{}]", fmt::join(b.sizes(), ", "), fmt::join(a.sizes(), ", "));
  if (a.numel() == 0) return "";
  if (a.is_complex())
    return difference(at::view_as_real(a.resolve_conj()), at::view_as_real(b.resolve_conj()));
  if (!a.is_floating_point()) {
    const double share = a.ne(b).to(at::kFloat).mean().item<double>();
    // A rounding step apart may flip a quantized value or a comparison; more of them may not differ.
    return share > 0.1 ? fmt::format("{:.0f} % of the elements differ", 100 * share) : "";
  }
  const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  if (!x.isnan().equal(y.isnan())) return "NaN at other places";
  const at::Tensor finite = x.isfinite().logical_and(y.isfinite());
  if (!x.masked_select(finite.logical_not())
           .nan_to_num(0)
           .equal(y.masked_select(finite.logical_not()).nan_to_num(0)))
    return "infinite at other places";
  const at::Tensor u = x.masked_select(finite), v = y.masked_select(finite);
  if (u.numel() == 0) return "";
  const double error = (u - v).abs().max().item<double>(), largest = u.abs().max().item<double>();
  return error > 2e-2 * (1e-3 + largest) ? fmt::format("off by {:.3g} of {:.3g}", error, largest) : "";
}

std::string difference(const Values& a, const Values& b) {
  if (a.size() != b.size()) return "another number of results";
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].isTensor() != b[i].isTensor()) return fmt::format("result {} is of another kind", i);
    if (!a[i].isTensor() || !a[i].toTensor().defined()) continue;
    const std::string found = difference(a[i].toTensor(), b[i].toTensor());
    if (!found.empty()) return fmt::format("result {}: {}", i, found);
  }
  return "";
}

/// For inputs that the file gives no samples of: zeros of the sizes that the graph declares.
Values inputs_of(const GraphModule& module) {
  if (!module.sample_inputs.empty()) return module.sample_inputs;
  Values inputs;
  for (const GraphInput& input : module.graph().inputs()) {
    if (input.kind != InputKind::kUser) continue;
    std::vector<int64_t> sizes;
    if (const auto& meta = input.value->meta()) {
      for (const SymExpr& size : meta->sizes) sizes.push_back(size.as_constant().value_or(2));
    }
    for (const int64_t size : sizes) {
      if (size < 0 || size > 4096) return {};
    }
    inputs.emplace_back(
        at::zeros(sizes, at::TensorOptions(input.value->meta() ? input.value->meta()->dtype : at::kFloat)));
  }
  return inputs;
}

/// Whether the model itself makes much of little: numbers that are a ten-thousandth apart give other answers,
/// as with the fractions of numbers near integers.
bool is_ill_conditioned(const GraphModule& module, const Values& inputs, const Values& answer) {
  const auto shaken = [](const at::Tensor& tensor) {
    return tensor.is_floating_point()
               ? tensor * (1 + 1e-4 * at::randn(tensor.sizes(), at::kDouble)).to(tensor)
               : tensor;
  };
  for (int i = 0; i < 4; ++i) {
    at::manual_seed(2 + i);
    TensorMap tensors = *module.tensors();
    for (auto& [name, tensor] : tensors) tensor = shaken(tensor);
    auto other =
        std::make_shared<GraphModule>(module.graph().clone(), std::move(tensors), module.call_spec());
    other->ranges = module.ranges;
    other->guards = module.guards;
    Values near = copied(inputs);
    for (c10::IValue& input : near) {
      if (input.isTensor() && input.toTensor().defined()) input = shaken(input.toTensor());
    }
    const Answer again = answer_of([&] { return results_of(Session(other), near); });
    if (again.values && !difference(answer, *again.values).empty()) return true;
  }
  return false;
}

/// The reason why equal answers cannot be expected; empty if they can.
std::string excuse_of(const GraphModule& module, const Values& inputs, const Values& answer) {
  if (is_random(module.graph())) return "random";
  if (has_extreme_numbers(module, inputs)) return "extreme numbers";
  if (takes_logarithms_or_roots_of_gelu(module.graph())) return "logarithm or root of gelu's zeros";
  if (is_ill_conditioned(module, inputs, answer)) return "ill-conditioned";
  return "";
}

/// Both have answered.
void compare_answers(const GraphModule& module, const Values& inputs, const Values& eager, const Values& ours,
                     TrialResult& result) {
  using Outcome = TrialResult::Outcome;
  try {
    const std::string found = difference(eager, ours);
    const std::string excuse = found.empty() ? "" : excuse_of(module, inputs, eager);
    if (found.empty()) {
      result.outcome = Outcome::kSame;
    } else if (!excuse.empty()) {
      result.outcome = Outcome::kForgiven;
      result.detail = excuse;
    } else {
      result.detail = "compiled and interpreted differ: " + found;
    }
  } catch (const c10::Error& error) {
    // Copies for the comparison are the trial's own.
    if (std::string_view(error.what_without_backtrace()).find("no memory for a buffer") ==
        std::string_view::npos)
      throw;
    result.outcome = Outcome::kForgiven;
    result.detail = "no memory to compare";
  }
}

void note_layouts(const std::string& path, TrialResult& result) {
  try {
    auto bytes = FileBytes::open(path, LoadMode::kRead);
    const std::string_view text(reinterpret_cast<const char*>(bytes->bytes().data()), bytes->bytes().size());
    if (text.find(ht::kPackedKey) == std::string_view::npos) return;  // spares reading most files again
    const HtFile file = HtFile::from_bytes(std::move(bytes));
    if (!file.metadata().has(ht::kPackedKey)) return;
    for (const auto& record : file.metadata().json(ht::kPackedKey))
      result.layouts.insert(record.value("layout", ""));
  } catch (const std::exception&) {
    // Not a readable record: nothing to count.
  }
}

void note_steps(const CompiledGraph& compiled, const Values& inputs, TrialResult& result) {
  try {
    for (const StepReport& step : compiled.report(inputs).steps)
      result.steps.insert(step.target + " " + step.kernel);
  } catch (const Error&) {
    // There is no plan to report.
  }
}

TrialResult try_module(const std::shared_ptr<GraphModule>& module) {
  TrialResult result;
  const Values inputs = inputs_of(*module);
  std::shared_ptr<const CompiledGraph> compiled;
  Answer eager = answer_of([&] { return results_of(Session(module), inputs); });
  const Answer ours = answer_of([&] {
    compiled = compile(module, {.threads = 1});
    return results_of(Session(module, compiled), inputs);
  });
  if (compiled) note_steps(*compiled, inputs, result);
  if (!eager.values && ours.values)
    eager = answer_of([&] { return results_of(Session(as_compiled(*module)), inputs); });
  result.detail = ours.error;
  if (!eager.values && !ours.values) {
    result.outcome = TrialResult::Outcome::kErrors;
  } else if (!eager.values) {
    result.detail = "the compiled model answers where the interpreter refuses: " + eager.error;
  } else if (!ours.values) {
    result.outcome = TrialResult::Outcome::kCautious;
  } else {
    compare_answers(*module, inputs, *eager.values, *ours.values, result);
  }
  return result;
}

}  // namespace

TrialResult try_file(const std::string& path) {
  TrialResult result;
  try {
    std::shared_ptr<GraphModule> module;
    try {
      module = path.ends_with(".ht") ? load_checkpoint(path, {.map = false}) : load_pt2(path, {.map = false});
    } catch (const Error& error) {
      result.outcome = TrialResult::Outcome::kRefused;
      result.detail = error.what();
    }
    if (module) result = try_module(module);
  } catch (const std::exception& error) {
    result.detail = fmt::format("an exception that is no halftone::Error: {}", error.what());
  }
  if (path.ends_with(".ht")) note_layouts(path, result);
  // Where the file was says nothing, and would make every message a kind of its own.
  for (size_t at; (at = result.detail.find(path)) != std::string::npos;)
    result.detail.replace(at, path.size(), "FILE");
  return result;
}

}  // namespace halftone::hostile
