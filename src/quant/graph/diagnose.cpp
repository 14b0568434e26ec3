// diagnose(): the error of each layer, from runs of the model with one layer quantized at a time.
#include "halftone/quant/diagnose.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/errors.h"
#include "halftone/quant/weight_format.h"
#include "quant/graph/diagnose_difference.h"
#include "quant/graph/find_layers.h"

namespace halftone {
namespace {

using Calls = std::vector<std::vector<c10::IValue>>;
using NamedOutputs = std::map<std::string, std::vector<at::Tensor>>;  // value → its tensors, call by call

struct RunResult {
  std::vector<at::Tensor> results;
  NamedOutputs values;
};

c10::IValue copy_of(const c10::IValue& value) {
  return value.isTensor() ? c10::IValue(value.toTensor().clone()) : value;
}

void collect_tensors(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) {
    if (value.toTensor().is_floating_point()) tensors.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) collect_tensors(tensor, tensors);
  }
}

/// Makes all calls in one session. Keeps copies of the watched values: later nodes may write over them.
RunResult run_calls(std::shared_ptr<const GraphModule> module, const Calls& calls,
                    const std::set<std::string>& watched) {
  RunResult run;
  Session session(std::move(module));
  session.set_node_hook([&](const Node& node, const std::vector<c10::IValue>& outputs, double) {
    if (node.outputs().empty() || !watched.contains(node.output()->name()) || !outputs.at(0).isTensor())
      return;
    run.values[node.output()->name()].push_back(outputs[0].toTensor().clone());
  });
  for (const auto& call : calls) {
    std::vector<c10::IValue> inputs;
    for (const c10::IValue& value : call) inputs.push_back(copy_of(value));
    for (const c10::IValue& output : session.run(std::move(inputs))) {
      std::vector<at::Tensor> tensors;
      collect_tensors(output, tensors);
      for (const at::Tensor& tensor : tensors) run.results.push_back(tensor.clone());
    }
  }
  return run;
}

void add_all(Difference& sum, const std::vector<at::Tensor>& expected, const std::vector<at::Tensor>& got) {
  if (expected.size() != got.size())
    fail(ErrorCode::kInternal, "the quantized model gives {} tensors, not {}", got.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].sizes() != got[i].sizes()) {  // a result whose shape depends on values
      fail(ErrorCode::kUnsupported,
           "a result has another shape when the model is quantized: they cannot be compared");
    }
    sum.add(expected[i], got[i]);
  }
}

bool same_layer(const LayerInfo& a, const LayerInfo& b) {
  return a.name == b.name && a.kind == b.kind && a.n == b.n && a.k == b.k;
}

class Diagnoser {
 public:
  Diagnoser(const GraphModule& module, const Calls& calls, const QuantizeOptions& options)
      : original_(module.clone()), calls_(calls), options_(options) {}

  Diagnosis run(const QuantConfig& config) {
    const auto all = original_->clone();
    QuantizeOptions quiet = options_;
    quiet.progress = {};
    quiet.dry_run = false;
    const QuantizeReport report = quantize_(*all, config, quiet);
    original_->mutable_graph();
    const std::vector<GraphLayer> layers = find_layers(*original_);
    std::set<std::string> watched;
    for (const GraphLayer& layer : layers) {
      for (const LayerUse& use : layer.uses) watched.insert(use.node->output()->name());
    }
    total_ = static_cast<int64_t>(report.count(LayerReport::Outcome::kQuantized)) + 2;
    step("the model as it is");
    reference_ = run_calls(original_, calls_, watched);
    require_same_answers(*original_, reference_.results, run_calls(original_, calls_, {}).results);
    Diagnosis diagnosis;
    std::vector<double> noises;
    for (size_t i = 0; i < layers.size(); ++i) {
      if (report.layers.at(i).outcome != LayerReport::Outcome::kQuantized) continue;
      step(layers[i].info.name);
      diagnosis.layers.push_back(diagnose_layer(layers[i], *report.layers[i].config, noises));
    }
    step("all layers");
    Difference sum;
    add_all(sum, reference_.results, run_calls(all, calls_, {}).results);
    diagnosis.result = sum.measure();
    share_out(diagnosis, noises);
    if (options_.progress) options_.progress(total_, total_, "");
    return diagnosis;
  }

 private:
  void step(std::string_view what) {
    if (options_.progress) options_.progress(done_++, total_, what);
  }

  LayerDiagnosis diagnose_layer(const GraphLayer& layer, const QuantConfig& config,
                                std::vector<double>& noises) const {
    LayerDiagnosis diagnosis{.layer = layer.info, .config = config};
    const at::Tensor matrix = layer.matrix.to(layer.dtype);
    Difference weight;
    {
      const QuantizedWeight quantized = quantize_weight(matrix, config, layer.info.name);
      weight.add(matrix, quantized.format->dequantize(quantized));
    }
    diagnosis.weight = weight.measure();
    const auto alone = original_->clone();
    QuantizeOptions only;
    only.embeddings = true;
    only.filter = [&](const LayerInfo& info) { return same_layer(info, layer.info); };
    quantize_(*alone, config, only);
    std::set<std::string> watched;
    for (const LayerUse& use : layer.uses) watched.insert(use.node->output()->name());
    const RunResult run = run_calls(alone, calls_, watched);
    // Only this layer differs, so its first use sees what it sees in the original; later ones see its own
    // errors too.
    Difference output;
    for (const std::string& name : watched) {
      const auto expected = reference_.values.find(name);
      const auto got = run.values.find(name);
      if (expected != reference_.values.end() && got != run.values.end())
        add_all(output, expected->second, got->second);
    }
    diagnosis.output = output.measure();
    Difference result;
    add_all(result, reference_.results, run.results);
    diagnosis.result = result.measure();
    noises.push_back(result.noise());
    return diagnosis;
  }

  static void share_out(Diagnosis& diagnosis, const std::vector<double>& noises) {
    double sum = 0;
    for (const double noise : noises) sum += noise;
    for (size_t i = 0; i < noises.size(); ++i) diagnosis.layers[i].share = sum > 0 ? noises[i] / sum : 0;
    std::stable_sort(diagnosis.layers.begin(), diagnosis.layers.end(),
                     [](const LayerDiagnosis& a, const LayerDiagnosis& b) {
                       return a.share != b.share ? a.share > b.share : a.weight.snr_db < b.weight.snr_db;
                     });
  }

  std::shared_ptr<GraphModule> original_;
  const Calls& calls_;
  const QuantizeOptions& options_;
  RunResult reference_;
  int64_t done_ = 0;
  int64_t total_ = 0;
};

}  // namespace

Diagnosis diagnose(const GraphModule& module, const QuantConfig& config, const Calls& calls,
                   const QuantizeOptions& options) {
  if (calls.empty())
    fail(ErrorCode::kInvalidArgument, "{}: diagnose needs the inputs of at least one call", module.name);
  return Diagnoser(module, calls, options).run(config);
}

}  // namespace halftone
