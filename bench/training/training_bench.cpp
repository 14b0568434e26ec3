// training_bench [--quick | --json]: a training step in eager and compiled, taking turns in one run:
// milliseconds and the peak of tensors' memory. Fails if a limit is missed.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "halftone/autograd/aot_autograd.h"
#include "halftone/compile/compilers.h"
#include "training/models.h"

namespace {

using namespace halftone;

/// torch's own allocator, with a count of what is alive. One for the process: blocks are freed by address
/// alone.
class CountingAllocator final : public c10::Allocator {
 public:
  static CountingAllocator& instance() {
    static CountingAllocator& one = *new CountingAllocator();
    return one;
  }
  c10::DataPtr allocate(size_t bytes) override {
    void* data = inner_->raw_allocate(bytes);
    const std::lock_guard lock(mutex_);
    if (data) sizes_[data] = bytes;
    current_ += bytes;
    peak_ = std::max(peak_, current_);
    return {data, data, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }

  /// Bytes at the peak of what runs, beyond those that were alive before.
  template <typename Run>
  size_t peak_of(const Run& run) {
    const size_t before = restart();
    run();
    const std::lock_guard lock(mutex_);
    return peak_ - before;
  }

 private:
  size_t restart() {
    const std::lock_guard lock(mutex_);
    return peak_ = current_;
  }
  static void release(void* data) {
    if (!data) return;
    CountingAllocator& self = instance();
    {
      const std::lock_guard lock(self.mutex_);
      const auto known = self.sizes_.find(data);
      self.current_ -= known->second;
      self.sizes_.erase(known);
    }
    self.inner_->raw_deallocate(data);
  }
  c10::Allocator* inner_ = c10::GetCPUAllocator();
  std::mutex mutex_;
  std::unordered_map<void*, size_t> sizes_;
  size_t current_ = 0, peak_ = 0;
};

struct Candidate {
  std::string name;
  ForwardFunction forward;
  std::vector<double> times;
  size_t peak = 0;
};

struct Way {
  const char* name;
  const char* backend;
  bool decompose;
  double budget;  ///< of min-cut; 0: default_partition
};

constexpr Way kWays[] = {{"aot_eager", "", false, 0},
                         {"min-cut", "", false, 1},
                         {"min-cut, decomposed", "", true, 1},
                         {"min-cut, budget 0.8", "", false, 0.8},
                         {"min-cut, budget 0.5", "", false, 0.5},
                         {"halftone, min-cut", "halftone", false, 1}};

AotOptions options_of(const Way& way) {
  AotOptions options;
  options.fw_compiler = *way.backend ? lookup_compiler(way.backend) : nop_compiler();
  options.debug_assert = false;
  if (way.decompose) options.decompositions = default_decompositions;
  if (way.budget > 0) {
    options.partition_fn = [budget = way.budget](const JointGraph& joint) {
      return min_cut_rematerialization_partition(joint, {budget});
    };
  }
  return options;
}

at::Tensor step(const TrainingModel& model, const ForwardFunction& forward) {
  model.module->zero_grad();
  const at::Tensor loss = forward(model.examples).toTensor().square().mean();
  loss.backward();
  return loss;
}

std::vector<at::Tensor> gradients(const TrainingModel& model) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& parameter : model.module->parameters()) all.push_back(parameter.grad().clone());
  return all;
}

/// The answer first: gradients are eager's.
void check(const TrainingModel& model, Candidate& candidate, const std::vector<at::Tensor>& expected) {
  step(model, candidate.forward);
  const std::vector<at::Tensor> found = gradients(model);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!at::allclose(found[i], expected[i], 1e-4, 1e-6))
      throw std::runtime_error(candidate.name + ": a gradient is not eager's");
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// What a model and a way to compile it are held to; empty: nothing.
std::string verdict_of(const std::string& model, const std::string& way, double time, double memory) {
  if (way == "aot_eager") return time <= 1.05 ? "PASS (time <= 1.05)" : "FAIL (time <= 1.05)";
  if (way == "min-cut, budget 0.8" && model == "character_transformer")
    return memory < 1 ? "PASS (memory < 1)" : "FAIL (memory < 1)";
  return {};
}

bool report(const TrainingModel& model, const std::vector<Candidate>& candidates, bool json) {
  bool met = true;
  if (!json) {
    std::printf("%s\n  %-24s %9s %9s %9s %10s %7s\n", model.name.c_str(), "", "ms", "p10", "of eager",
                "peak MB", "of it");
  }
  const Candidate& eager = candidates.front();
  for (const Candidate& one : candidates) {
    std::vector<double> sorted = one.times;
    std::sort(sorted.begin(), sorted.end());
    const double ms = median(one.times), p10 = sorted[sorted.size() / 10], time = ms / median(eager.times);
    const double peak = static_cast<double>(one.peak) / 1e6,
                 memory = static_cast<double>(one.peak) / static_cast<double>(eager.peak);
    const std::string verdict = verdict_of(model.name, one.name, time, memory);
    met = met && !verdict.starts_with("FAIL");
    const std::string line =
        json
            ? fmt::format(
                  R"({{"model": "{}", "way": "{}", "ms": {}, "p10": {}, "time": {}, "peak_mb": {}, "memory": {}, )"
                  R"("verdict": "{}"}})",
                  model.name, one.name, ms, p10, time, peak, memory, verdict)
            : fmt::format("  {:24} {:9.3f} {:9.3f} {:9.3f} {:10.3f} {:7.3f}  {}", one.name, ms, p10, time,
                          peak, memory, verdict);
    std::printf("%s\n", line.c_str());
  }
  return met;
}

bool measure(TrainingModel model, CountingAllocator& allocator, double seconds, bool json) {
  std::vector<Candidate> candidates = {{"eager", model.forward, {}}};
  for (const Way& way : kWays) {
    const AotAutograd aot(options_of(way));
    candidates.push_back({way.name, aot(*model.module, model.forward, model.examples), {}});
  }
  step(model, model.forward);
  const std::vector<at::Tensor> expected = gradients(model);
  for (Candidate& candidate : candidates) {
    check(model, candidate, expected);
    model.module->zero_grad();
    candidate.peak = allocator.peak_of([&] { step(model, candidate.forward); });
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end || candidates.front().times.size() < 7) {
    for (Candidate& candidate : candidates) {
      const auto start = std::chrono::steady_clock::now();
      step(model, candidate.forward);
      candidate.times.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
  }
  return report(model, candidates, json);
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string_view option = argc > 1 ? argv[1] : "";
  const bool quick = option == "--quick", json = option == "--json";
  CountingAllocator& allocator = CountingAllocator::instance();
  c10::SetCPUAllocator(&allocator, /*priority=*/100);
  if (!json) std::printf("threads: %d\n", at::get_num_threads());
  try {
    bool met = true;
    for (const char* name : {"mlp", "residual_convolutions", "transformer_encoder_layer"})
      met = measure(training_model(name), allocator, quick ? 0.5 : 3, json) && met;
    met = measure(character_transformer(96, 128, 4, 8, 128), allocator, quick ? 2 : 20, json) && met;
    return met ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "training_bench: %s\n", error.what());
    return 1;
  }
}
