#include "capture/module/dynamic_sizes.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/remainder.h>

#include <algorithm>
#include <numeric>

#include "base/errors.h"
#include "base/nearest.h"

namespace halftone {
namespace {

constexpr size_t kTraces = 4;  // two to solve, one to confirm, one more against coincidences
constexpr size_t kMinSizes = 3;
constexpr int64_t kRow = 8;  // neighbouring sizes, so that all remainders of small divisors are seen

/// Elements are repeated or left out, so that indices and masks stay valid.
at::Tensor resized(const at::Tensor& tensor, int64_t dim, int64_t size) {
  if (tensor.size(dim) == size) return tensor;
  const at::Tensor rows = at::remainder(at::arange(size, at::kLong), tensor.size(dim));
  return at::index_select(tensor.detach(), dim, rows);
}

class Planner {
 public:
  Planner(const std::vector<c10::IValue>& examples, const std::vector<std::string>& names,
          const CaptureOptions& options, TraceCount count)
      : examples_(examples), names_(names), options_(options), count_(count) {
    FlatArgs flat = flatten_args(examples);
    spec_ = std::move(flat.spec);
    leaves_.push_back(std::move(flat.leaves));
  }

  DynamicSizes run() {
    for (const DynamicDim& dim : options_.dynamic) declare(dim);
    for (const auto& more : options_.more_examples) add_example(more);
    find_differences();
    if (plan_.dims.empty()) return std::move(plan_);
    choose_traces();
    choose_smallest();
    return std::move(plan_);
  }

 private:
  int64_t size(size_t example, const DynamicLeaf& dim) const {
    return leaves_[example][dim.leaf].toTensor().size(static_cast<int64_t>(dim.dim));
  }

  void declare(const DynamicDim& declared) {
    const auto name = std::find(names_.begin(), names_.end(), declared.input);
    if (name == names_.end() || declared.input.empty()) {
      fail(ErrorCode::kInvalidArgument, "CaptureOptions::dynamic: there is no input \"{}\"{}", declared.input,
           did_you_mean(declared.input, names_));
    }
    const auto leaf = static_cast<size_t>(name - names_.begin());
    const int64_t rank = leaves_[0][leaf].toTensor().dim();
    const int64_t dim = declared.dim < 0 ? declared.dim + rank : declared.dim;
    if (dim < 0 || dim >= rank || declared.symbol.empty() || declared.min > declared.max ||
        declared.min < 0) {
      fail(ErrorCode::kInvalidArgument,
           "CaptureOptions::dynamic: dimension {} of \"{}\" ({} dimensions), symbol \"{}\", from {} to {}",
           declared.dim, declared.input, rank, declared.symbol, declared.min, declared.max);
    }
    plan_.dims.push_back({leaf, static_cast<size_t>(dim), declared.symbol});
    SymbolRange& range = plan_.ranges.try_emplace(declared.symbol, SymbolRange{}).first->second;
    range = {std::max(range.min, declared.min), std::min(range.max, declared.max)};
  }

  void add_example(const std::vector<c10::IValue>& more) {
    FlatArgs flat = flatten_args(more);
    leaves_.push_back(std::move(flat.leaves));
    if (!(flat.spec == spec_))
      fail(ErrorCode::kInvalidArgument,
           "CaptureOptions::more_examples: the arguments are nested in another way");
    for (size_t i = 0; i < names_.size(); ++i) {
      const c10::IValue &first = leaves_[0][i], &other = leaves_.back()[i];
      const bool same =
          names_[i].empty() || (other.isTensor() && other.toTensor().defined() &&
                                other.toTensor().dim() == first.toTensor().dim() &&
                                other.toTensor().scalar_type() == first.toTensor().scalar_type());
      if (!same) {
        fail(ErrorCode::kInvalidArgument,
             "CaptureOptions::more_examples: \"{}\" has another type or number of dimensions", names_[i]);
      }
    }
  }

  bool is_declared(size_t leaf, size_t dim) const {
    return std::any_of(plan_.dims.begin(), plan_.dims.end(),
                       [&](const DynamicLeaf& known) { return known.leaf == leaf && known.dim == dim; });
  }

  /// Dimensions that go together through all examples have one symbol.
  void find_differences() {
    std::map<std::vector<int64_t>, std::string> symbols;
    for (const DynamicLeaf& dim : plan_.dims) symbols.emplace(sizes_of(dim), dim.symbol);
    size_t found = 0;
    for (size_t leaf = 0; leaf < names_.size(); ++leaf) {
      if (names_[leaf].empty()) continue;
      for (size_t dim = 0; std::cmp_less(dim, leaves_[0][leaf].toTensor().dim()); ++dim) {
        if (is_declared(leaf, dim)) continue;
        const std::vector<int64_t> sizes = sizes_of({leaf, dim, {}});
        if (std::all_of(sizes.begin(), sizes.end(), [&](int64_t size) { return size == sizes[0]; })) continue;
        const auto [symbol, added] = symbols.try_emplace(sizes, "");
        if (added) {
          symbol->second = fmt::format("s{}", found++);
          plan_.ranges[symbol->second] = {1, SymbolRange{}.max};
        }
        plan_.dims.push_back({leaf, dim, symbol->second});
      }
    }
  }

  std::vector<int64_t> sizes_of(const DynamicLeaf& dim) const {
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < leaves_.size(); ++i) sizes.push_back(size(i, dim));
    return sizes;
  }

  SymbolBindings bindings_of(size_t example) const {
    SymbolBindings bindings;
    for (const DynamicLeaf& dim : plan_.dims) {
      const auto [known, added] = bindings.try_emplace(dim.symbol, size(example, dim));
      if (!added && known->second != size(example, dim)) {
        fail(ErrorCode::kInvalidArgument, "example {}: dimensions of \"{}\" have the sizes {} and {}",
             example, dim.symbol, known->second, size(example, dim));
      }
    }
    return bindings;
  }

  /// A size of 1 is broadcast, and equal sizes cannot be told apart: such a trace would say too little.
  static bool is_telling(const SymbolBindings& bindings) {
    std::set<int64_t> seen;
    return std::all_of(bindings.begin(), bindings.end(), [&](const auto& entry) {
      return entry.second > 1 && seen.insert(entry.second).second;
    });
  }

  bool is_new(const SymbolBindings& bindings) const {
    return std::none_of(plan_.bindings.begin(), plan_.bindings.end(), [&](const SymbolBindings& known) {
      return std::any_of(known.begin(), known.end(),
                         [&](const auto& entry) { return bindings.at(entry.first) == entry.second; });
    });
  }

  void choose_traces() {
    for (size_t i = 0; i < leaves_.size(); ++i) {
      SymbolBindings bindings = bindings_of(i);
      for (const auto& [symbol, range] : plan_.ranges) {
        if (bindings.at(symbol) < range.min || bindings.at(symbol) > range.max)
          fail(ErrorCode::kInvalidArgument, "example {}: {} = {} is out of its range", i, symbol,
               bindings.at(symbol));
      }
      if (!is_telling(bindings) || !is_new(bindings)) continue;
      plan_.starts_with_example = plan_.starts_with_example || i == 0;
      plan_.examples.push_back(i == 0 ? examples_ : options_.more_examples[i - 1]);
      plan_.bindings.push_back(std::move(bindings));
    }
    // If enough examples were given, the model may take only certain sizes.
    if (leaves_.size() >= kMinSizes && plan_.bindings.size() >= kMinSizes) return;
    while (plan_.bindings.size() < kTraces && add_made_up()) {
    }
    if (count_ == TraceCount::kMany) add_row();
    if (plan_.bindings.size() < kMinSizes)
      fail(ErrorCode::kInvalidArgument, "dynamic sizes need ranges with at least {} sizes above 1",
           kMinSizes);
  }

  bool add_made_up() {
    SymbolBindings bindings;
    for (const auto& [symbol, value] : bindings_of(0)) {
      const int64_t size = next_size(symbol, value, bindings);
      if (size == 0) return false;
      bindings[symbol] = size;
    }
    add_trace(std::move(bindings));
    return true;
  }

  /// Each symbol walks through its row in an order of its own (odd steps reach all of eight); and two sizes
  /// far away, to tell divisors apart.
  void add_row() {
    for (int64_t i = 0; i < kRow + 2; ++i) {
      SymbolBindings bindings;
      int64_t step = 1;
      for (const auto& [symbol, value] : bindings_of(0)) {
        const SymbolRange range = plan_.ranges.at(symbol);
        const int64_t start = value <= range.max - kRow ? value : std::max(range.min, range.max - kRow);
        bindings[symbol] =
            std::clamp(start + 1 + i * step % kRow, std::max<int64_t>(range.min, 2), range.max);
        step += 2;
      }
      add_trace(std::move(bindings));
    }
  }

  void choose_smallest() {
    for (const auto& [symbol, range] : plan_.ranges)
      plan_.smallest_bindings[symbol] = std::max<int64_t>(range.min, 1);
    plan_.smallest = resized_examples(plan_.smallest_bindings);
  }

  void add_trace(SymbolBindings bindings) {
    plan_.examples.push_back(resized_examples(bindings));
    plan_.bindings.push_back(std::move(bindings));
  }

  std::vector<c10::IValue> resized_examples(const SymbolBindings& bindings) const {
    std::vector<c10::IValue> leaves = leaves_[0];
    for (const DynamicLeaf& dim : plan_.dims) {
      leaves[dim.leaf] =
          resized(leaves[dim.leaf].toTensor(), static_cast<int64_t>(dim.dim), bindings.at(dim.symbol));
    }
    return with_leaves(examples_, leaves);
  }

  /// The nearest size above the example's, else below, without a factor in common with those taken; without
  /// that demand where the range is too narrow. 0: there is none.
  int64_t next_size(const std::string& symbol, int64_t from, const SymbolBindings& others) const {
    const SymbolRange range = plan_.ranges.at(symbol);
    std::vector<int64_t> taken;
    for (const SymbolBindings& known : plan_.bindings) {
      for (const auto& [name, value] : known) taken.push_back(value);
    }
    for (const auto& [name, value] : others) taken.push_back(value);
    constexpr int64_t kReach = 64;
    for (const bool coprime : {true, false}) {
      for (const int64_t step : {1, -1}) {
        for (int64_t size = from + step;
             size >= std::max<int64_t>(2, range.min) && size <= range.max && std::abs(size - from) <= kReach;
             size += step) {
          const bool free = std::all_of(taken.begin(), taken.end(), [&](int64_t other) {
            return coprime ? std::gcd(size, other) == 1 : size != other;
          });
          if (free) return size;
        }
      }
    }
    return 0;
  }

  const std::vector<c10::IValue>& examples_;
  const std::vector<std::string>& names_;
  const CaptureOptions& options_;
  const TraceCount count_;
  TreeSpec spec_;
  std::vector<std::vector<c10::IValue>> leaves_;  ///< of each example
  DynamicSizes plan_;
};

}  // namespace

DynamicSizes plan_sizes(const std::vector<c10::IValue>& examples, const std::vector<std::string>& names,
                        const CaptureOptions& options, TraceCount count) {
  return Planner(examples, names, options, count).run();
}

}  // namespace halftone
