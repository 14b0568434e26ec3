#include "common/candidate.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>

#include "halftone/capture/open_model.h"
#include "halftone/quant/quantize.h"

namespace halftone::bench {
namespace {

using Clock = std::chrono::steady_clock;

at::Tensor values_like(const at::Tensor& sample, const std::vector<int64_t>& sizes) {
  if (sample.is_floating_point()) return at::randn(sizes, sample.options());
  const auto low = sample.min().item<int64_t>(), high = sample.max().item<int64_t>();
  // Masks of ones and zeros: all real tokens.
  if (low >= 0 && high <= 1) return at::ones(sizes, sample.options());
  return at::randint(low, high + 1, sizes, sample.options());
}

}  // namespace

std::vector<CandidateSpec> encoder_candidates() {
  std::vector<CandidateSpec> specs{{"eager-fp32", NoQuantConfig{}, false}, {"fp32", NoQuantConfig{}}};
  for (const char* scheme :
       {"int8wo", "int8dq-7bit", "int8dq", "int4wo", "int4wo-int8act", "fp8wo", "bf16wo"})
    specs.push_back({scheme, scheme});
  return specs;
}

Candidate make_candidate(const std::string& path, const CandidateSpec& spec) {
  Candidate candidate{spec.name, open_model(path), nullptr};
  if (!spec.config.is_noquant()) quantize_(*candidate.module, spec.config);
  if (spec.compiled)
    candidate.compile_ms = milliseconds([&] { candidate.compiled = compile(candidate.module); });
  return candidate;
}

std::vector<Candidate> make_candidates(const std::string& path, const std::vector<CandidateSpec>& specs) {
  std::vector<Candidate> candidates;
  for (const CandidateSpec& spec : specs) candidates.push_back(make_candidate(path, spec));
  return candidates;
}

at::Tensor first_result(const Candidate& candidate, const std::vector<c10::IValue>& inputs) {
  return Session(candidate.module, candidate.compiled).run(inputs).at(0).toTensor();
}

double cosine(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.flatten(1).to(at::kDouble), y = b.flatten(1).to(at::kDouble);
  return ((x * y).sum(1) / (x.norm(2, 1) * y.norm(2, 1))).mean().item<double>();
}

double milliseconds(const std::function<void()>& run) {
  const auto start = Clock::now();
  run();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::vector<Measurement> measure(const std::vector<Candidate>& candidates,
                                 const std::vector<c10::IValue>& inputs, const MeasureOptions& options) {
  const at::Tensor exact = first_result(candidates.at(0), inputs);
  std::vector<Measurement> rows;
  std::vector<TimedCandidate> timed_candidates;
  for (const Candidate& candidate : candidates) {
    rows.push_back({candidate.name, 0, 0, 0, cosine(first_result(candidate, inputs), exact)});
    if (!(rows.back().cosine >= options.min_cosine)) {
      throw std::runtime_error(
          fmt::format("{}: cosine {} to fp32: wrong, not timed", candidate.name, rows.back().cosine));
    }
    if (!options.only.empty() && candidate.name != options.only) {
      rows.pop_back();
      continue;
    }
    // A model with state begins each run anew.
    const auto session = std::make_shared<Session>(candidate.module, candidate.compiled);
    TimedCandidate timed_candidate;
    timed_candidate.name = candidate.name;
    timed_candidate.prepare = [session] { session->reset(); };
    timed_candidate.run = [session, &inputs] { session->run(inputs); };
    timed_candidates.push_back(std::move(timed_candidate));
  }
  halftone::MeasureOptions how;
  how.seconds = options.seconds;
  how.progress = options.progress;
  const Measurements measured = halftone::measure(timed_candidates, how);
  for (size_t i = 0; i < rows.size(); ++i) {
    const MeasuredTime& time = measured.rows[i];
    if (time.failed) throw std::runtime_error(fmt::format("{}: {}", time.name, time.reason));
    rows[i].median = time.median;
    rows[i].p10 = time.p10;
    rows[i].p90 = time.p90;
  }
  return rows;
}

std::vector<c10::IValue> make_inputs(const GraphModule& module, const std::vector<int64_t>& symbol_values) {
  at::manual_seed(0);
  SymbolBindings bindings;
  std::vector<c10::IValue> inputs;
  for (const GraphInput& input : module.graph().inputs()) {
    if (input.kind != InputKind::kUser) continue;
    if (!input.value->meta() || inputs.size() == module.sample_inputs.size())
      throw std::runtime_error(input.target + ": not a tensor with a sample in the file");
    std::vector<int64_t> sizes;
    for (const SymExpr& size : input.value->meta()->sizes) {
      if (size.is_symbol() && !bindings.contains(size.symbol())) {
        const auto range = module.ranges.find(size.symbol());
        const int64_t wanted = symbol_values.at(bindings.size());
        const int64_t most = range != module.ranges.end() ? range->second.max : wanted;
        bindings.emplace(size.symbol(), std::min(wanted, most));
      }
      sizes.push_back(size.evaluate(bindings));
    }
    inputs.emplace_back(values_like(module.sample_inputs[inputs.size()].toTensor(), sizes));
  }
  return inputs;
}

}  // namespace halftone::bench
