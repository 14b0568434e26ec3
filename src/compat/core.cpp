#include "compat/core.h"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compat/rewrites.h"
#include "compat/search.h"
#include "graph/ir/text_names.h"
#include "graph/run/mutation.h"
#include "tune/report/fingerprint.h"

namespace halftone::baseline {
namespace {

/// What a linear, a convolution or a norm can do where it writes its result.
constexpr const char* kEpiloguePasses[] = {"fuse_activation",    "fuse_residual", "fuse_conv_activation",
                                           "fuse_conv_residual", "fuse_norm_sum", "quantize_once"};
/// Passes that give the same numbers and do not always pay.
constexpr const char* kOptionalPasses[] = {"join_linears", "patches_to_linear", "quantize_once"};

bool draws_random_numbers(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    if (node->op() && node->op()->hasTag(at::Tag::nondeterministic_seeded)) return true;
    return std::any_of(node->inputs().begin(), node->inputs().end(), [](const NamedArgument& input) {
      const auto* inner = input.value.get_if<std::shared_ptr<Graph>>();
      return inner != nullptr && draws_random_numbers(**inner);
    });
  });
}

/// Why a call may not be repeated, or "".
std::string why_not_repeatable(const Graph& graph) {
  const std::vector<bool> written = inputs_written_in_place(graph);
  const auto& outputs = graph.outputs();
  const bool mutates = std::any_of(outputs.begin(), outputs.end(), [](const GraphOutput& output) {
    return output.kind != OutputKind::kUser;
  });
  if (mutates || std::find(written.begin(), written.end(), true) != written.end())
    return "the model writes to its state or inputs";
  if (draws_random_numbers(graph)) return "the model draws random numbers";
  return "";
}

std::shared_ptr<const GraphModule> with_rewrites(const std::shared_ptr<const GraphModule>& module,
                                                 const BaselineOptions& options,
                                                 std::vector<std::string>& notes) {
  if (options.fuse_int_mm_with_mul && options.mixed_mm) return module;
  auto copy = module->with_flat_graph(module->graph().clone(), *module->tensors());
  if (!options.fuse_int_mm_with_mul) separate_int_products(*copy, notes);
  if (!options.mixed_mm) dequantize_weights(*copy, notes);
  lint_or_throw(copy->graph(), "baseline");
  return copy;
}

std::vector<int64_t> shape_key(const std::vector<c10::IValue>& inputs) {
  std::vector<int64_t> key;
  for (const c10::IValue& input : inputs) {
    if (!input.isTensor() || !input.toTensor().defined()) {
      key.push_back(-1);
      key.push_back(input.isInt() ? input.toInt() : 0);
      continue;
    }
    const at::Tensor& tensor = input.toTensor();
    key.push_back(static_cast<int64_t>(tensor.scalar_type()));
    key.push_back(tensor.dim());
    key.insert(key.end(), tensor.sizes().begin(), tensor.sizes().end());
  }
  return key;
}

std::string shape_text(const std::vector<c10::IValue>& inputs) {
  std::vector<std::string> parts;
  for (const c10::IValue& input : inputs) {
    const bool tensor = input.isTensor() && input.toTensor().defined();
    parts.push_back(tensor ? fmt::format("{}[{}]", dtype_name(input.toTensor().scalar_type()),
                                         fmt::join(input.toTensor().sizes(), ", "))
                           : input.tagKind());
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

Core::Core(std::shared_ptr<const GraphModule> module, const BaselineOptions& options)
    : module_(std::move(module)), options_(options) {
  for (const auto& [name, tensor] : *module_->tensors()) {
    if (tensor.is_inference()) {
      can_be_shared_ = false;
    } else {
      versions_.emplace_back(tensor, tensor._version());
    }
  }
  rewritten_ = with_rewrites(module_, options_, notes_);
  if (!options_.epilogue_fusion)
    compile_options_.disabled_passes.assign(std::begin(kEpiloguePasses), std::end(kEpiloguePasses));
  start_ = compile(rewritten_, compile_options_);
  why_no_search_ = why_not_repeatable(start_->graph());
}

bool Core::unchanged() const {
  return std::all_of(versions_.begin(), versions_.end(),
                     [](const auto& entry) { return entry.first._version() == entry.second; });
}

std::vector<SearchReport> Core::searches() const {
  const std::shared_lock lock(mutex_);
  return reports_;
}

std::shared_ptr<const CompiledGraph> Core::find(const ShapeKey& key) const {
  const std::shared_lock lock(mutex_);
  const auto found = chosen_.find(key);
  if (found != chosen_.end()) return found->second;
  const bool full = static_cast<int64_t>(chosen_.size()) >= options_.recompile_limit;
  return full ? start_ : nullptr;
}

std::shared_ptr<const CompiledGraph> Core::model_for(const std::vector<c10::IValue>& inputs,
                                                     const RunOnce& run) {
  if (!options_.search_kernel_parameters) return start_;
  const ShapeKey key = shape_key(inputs);
  if (auto known = find(key)) return known;
  const std::lock_guard turn(searching_);
  if (auto known = find(key)) return known;  // another thread was first
  return search(inputs, run);
}

/// Those that found something to do in this model.
std::vector<std::string> Core::optional_passes() const {
  std::vector<std::string> passes;
  for (const char* pass : kOptionalPasses) {
    const auto& log = start_->log();
    const bool idle = std::any_of(log.begin(), log.end(), [&](const std::string& line) {
      return line == fmt::format("{}: found nothing", pass) || line == fmt::format("{}: switched off", pass);
    });
    if (!idle) passes.emplace_back(pass);
  }
  return passes;
}

std::shared_ptr<const CompiledGraph> Core::search(const std::vector<c10::IValue>& inputs,
                                                  const RunOnce& run) {
  SearchResult result;
  result.model = start_;
  result.report.shape = shape_text(inputs);
  const int threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  const std::vector<std::string> passes = optional_passes();
  result.report.not_searched = why_no_search_;
  if (threads == 1 && passes.empty()) result.report.not_searched = "there is nothing to choose";
  if (result.report.not_searched.empty()) {
    run(*start_);  // inputs that do not fit are the caller's error, not the search's
    const auto make = [&](const SearchSetting& setting) {
      CompileOptions changed = compile_options_;
      changed.threads = setting.threads;
      changed.disabled_passes.insert(changed.disabled_passes.end(), setting.without.begin(),
                                     setting.without.end());
      return compile(rewritten_, changed);
    };
    result = search_parameters(
        {result.report.shape, threads, passes, start_, make, run, options_.search_all_directions});
  } else {
    result.report.candidates.push_back({threads, {}});
  }
  const std::unique_lock lock(mutex_);
  chosen_[shape_key(inputs)] = result.model;
  reports_.push_back(std::move(result.report));
  return result.model;
}

std::shared_ptr<Core> core_for(const std::shared_ptr<const GraphModule>& module,
                               const BaselineOptions& options) {
  if (!options.graph_cache) return std::make_shared<Core>(module, options);
  static std::mutex mutex;
  static auto& cache = *new std::map<std::string, std::weak_ptr<Core>>();  // outlives all statics
  std::string key = model_hash(*module);
  for (const BaselineOption& option : list_baseline_options(options))
    key += fmt::format(" {}={}", option.name, option.value);
  const std::lock_guard lock(mutex);
  std::erase_if(cache, [](const auto& entry) { return entry.second.expired(); });
  if (const auto known = cache[key].lock(); known && known->unchanged()) return known;
  auto made = std::make_shared<Core>(module, options);
  if (made->can_be_shared()) cache[key] = made;
  return made;
}

}  // namespace halftone::baseline
