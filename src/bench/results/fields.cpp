#include "bench/results/fields.h"

#include <algorithm>
#include <array>

#include "base/errors.h"
#include "base/nearest.h"
#include "bench/results/text.h"

namespace halftone {
namespace {

constexpr std::array<std::string_view, 16> kAccuracyWords = {
    "pass",
    "pass_due_to_skip",
    "fail_accuracy",
    "fail_to_run",
    "OOM",
    "timeout",
    "infra_error",
    "model_fail_to_load",
    "eager_fail_to_run",
    "eager_1st_run_fail_to_run",
    "eager_1st_run_OOM",
    "eager_2nd_run_fail_to_run",
    "eager_2nd_run_OOM",
    "eager_two_runs_differ",
    "eager_variation",
    "fp64_OOM",

};

// Rounding may leave a cosine a little outside of its range.
constexpr double kCosineLimit = 1.001;

constexpr std::array kRowFields = {
    Field<BenchRow>{"dev", &BenchRow::dev},
    Field<BenchRow>{"name", &BenchRow::name, true},
    Field<BenchRow>{"batch_size", &BenchRow::batch_size, false, 0},
    Field<BenchRow>{"accuracy", &BenchRow::accuracy},
    Field<BenchRow>{"speedup", &BenchRow::speedup, false, 0},
    Field<BenchRow>{"abs_latency", &BenchRow::abs_latency, false, 0},
    Field<BenchRow>{"compilation_latency", &BenchRow::compilation_latency, false, 0},
    Field<BenchRow>{"compression_ratio", &BenchRow::compression_ratio, false, 0},
    Field<BenchRow>{"eager_peak_mem", &BenchRow::eager_peak_mem, false, 0},
    Field<BenchRow>{"halftone_peak_mem", &BenchRow::halftone_peak_mem, false, 0},
    Field<BenchRow>{"mode", &BenchRow::mode},
    Field<BenchRow>{"scheme", &BenchRow::scheme},
    Field<BenchRow>{"backend", &BenchRow::backend},
    Field<BenchRow>{"cosine", &BenchRow::cosine, false, -kCosineLimit, kCosineLimit},
    Field<BenchRow>{"bytes", &BenchRow::bytes, false, 0},
    Field<BenchRow>{"unsupported_ops", &BenchRow::unsupported_ops, false, 0},
    Field<BenchRow>{"spread", &BenchRow::spread, false, 0},
    Field<BenchRow>{"speedup_low", &BenchRow::speedup_low, false, 0},
    Field<BenchRow>{"speedup_high", &BenchRow::speedup_high, false, 0},
    Field<BenchRow>{"rounds", &BenchRow::rounds, false, 0},
    Field<BenchRow>{"error", &BenchRow::error},
};

constexpr std::array kLayerFields = {
    Field<BenchLayer>{"layer", &BenchLayer::layer, true},
    Field<BenchLayer>{"kind", &BenchLayer::kind},
    Field<BenchLayer>{"scheme", &BenchLayer::scheme},
    Field<BenchLayer>{"share", &BenchLayer::share, false, 0, 1.001},
    Field<BenchLayer>{"ms", &BenchLayer::ms, false, 0},
    Field<BenchLayer>{"error", &BenchLayer::error},
    Field<BenchLayer>{"reason", &BenchLayer::reason},
};

constexpr std::array kCandidateFields = {
    Field<BenchCandidate>{"scheme", &BenchCandidate::scheme, true},
    Field<BenchCandidate>{"ms", &BenchCandidate::ms, false, 0},
    Field<BenchCandidate>{"error", &BenchCandidate::error},
    Field<BenchCandidate>{"note", &BenchCandidate::note},
};

constexpr std::array kChoiceFields = {
    Field<BenchChoice>{"layer", &BenchChoice::layer, true},
    Field<BenchChoice>{"choice", &BenchChoice::choice, true},
    Field<BenchChoice>{"reason", &BenchChoice::reason},
};

constexpr std::array kMachineFields = {
    Field<BenchMachine>{"cpu", &BenchMachine::cpu},
    Field<BenchMachine>{"isa", &BenchMachine::isa},
    Field<BenchMachine>{"threads", &BenchMachine::threads, false, 0},
    Field<BenchMachine>{"os", &BenchMachine::os},
    Field<BenchMachine>{"date", &BenchMachine::date},
};

constexpr std::array kMeanFields = {
    Field<BenchMean>{"mode", &BenchMean::mode},
    Field<BenchMean>{"scheme", &BenchMean::scheme},
    Field<BenchMean>{"backend", &BenchMean::backend},
    Field<BenchMean>{"rows", &BenchMean::rows, false, 0},
    Field<BenchMean>{"left_out", &BenchMean::left_out, false, 0},
    Field<BenchMean>{"speedup", &BenchMean::speedup, false, 0},
    Field<BenchMean>{"compression_ratio", &BenchMean::compression_ratio, false, 0},
};

std::string range_problem(double value, double smallest, double largest) {
  if (value < smallest) return fmt::format("{} is less than {}", value, smallest);
  if (value > largest) return fmt::format("{} is more than {}", value, largest);
  return {};
}

template <typename T>
void check_object(const T& object, const std::string& owner) {
  for (const Field<T>& field : fields_of<T>()) {
    const std::string problem = problem_of(object, field);
    if (!problem.empty()) fail(ErrorCode::kInvalidArgument, "{}: {}: {}", owner, field.name, problem);
  }
}

}  // namespace

std::span<const std::string_view> accuracy_words() {
  return kAccuracyWords;
}

bool row_is_sound(const BenchRow& row, bool timed) {
  if (!accuracy_holds(row.accuracy)) return false;
  return !timed || row.speedup.has_value() || row.accuracy == "pass_due_to_skip";
}

bool accuracy_holds(std::string_view word) {
  return word.empty() || word.starts_with("pass");
}

// clang-format off
template <> std::span<const Field<BenchRow>> fields_of() { return kRowFields; }
template <> std::span<const Field<BenchLayer>> fields_of() { return kLayerFields; }
template <> std::span<const Field<BenchCandidate>> fields_of() { return kCandidateFields; }
template <> std::span<const Field<BenchChoice>> fields_of() { return kChoiceFields; }
template <> std::span<const Field<BenchMachine>> fields_of() { return kMachineFields; }
template <> std::span<const Field<BenchMean>> fields_of() { return kMeanFields; }
// clang-format on

template <typename T>
std::string problem_of(const T& object, const Field<T>& field) {
  const auto look = [&](const auto& value) -> std::string {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::string>) {
      if (field.required && value.empty()) return "is empty";
      if (!std::is_same_v<T, BenchRow> || field.name != "accuracy" || value.empty()) return {};
      if (std::ranges::find(kAccuracyWords, value) != kAccuracyWords.end()) return {};
      return fmt::format("unknown word \"{}\"{}", terminal_text(value, 60),
                         did_you_mean(value, {kAccuracyWords.begin(), kAccuracyWords.end()}));
    } else if constexpr (std::is_same_v<Value, int64_t>) {
      return range_problem(static_cast<double>(value), field.smallest, field.largest);
    } else {
      return value ? range_problem(static_cast<double>(*value), field.smallest, field.largest)
                   : std::string();
    }
  };
  return std::visit([&](auto member) { return look(object.*member); }, field.member);
}

template std::string problem_of(const BenchRow&, const Field<BenchRow>&);
template std::string problem_of(const BenchLayer&, const Field<BenchLayer>&);
template std::string problem_of(const BenchCandidate&, const Field<BenchCandidate>&);
template std::string problem_of(const BenchChoice&, const Field<BenchChoice>&);
template std::string problem_of(const BenchMachine&, const Field<BenchMachine>&);
template std::string problem_of(const BenchMean&, const Field<BenchMean>&);

void check_writable(const BenchRow& row) {
  const std::string owner = fmt::format("result of \"{}\"", terminal_text(row.name, 60));
  check_object(row, owner);
  for (const BenchLayer& layer : row.layers) check_object(layer, owner + ": layers");
  for (const BenchChoice& choice : row.plan) {
    check_object(choice, owner + ": plan");
    for (const BenchCandidate& candidate : choice.candidates) check_object(candidate, owner + ": candidates");
  }
}

}  // namespace halftone
