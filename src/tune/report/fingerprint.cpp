#include "tune/report/fingerprint.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <span>
#include <vector>

#include "base/sha256.h"
#include "graph/ir/text_names.h"

namespace halftone {
namespace {

std::string digest_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().contiguous();
  return to_hex(sha256(std::as_bytes(
      std::span(static_cast<const char*>(dense.const_data_ptr()), static_cast<size_t>(dense.nbytes())))));
}

/// Largest first, so that no thread is left with the embedding at the end.
std::vector<std::string> hash_tensors(const std::vector<at::Tensor>& tensors) {
  std::vector<size_t> order(tensors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return tensors[a].nbytes() > tensors[b].nbytes(); });
  std::vector<std::string> hashes(tensors.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < order.size(); i = next++) hashes[order[i]] = digest_of(tensors[order[i]]);
  };
  std::vector<std::future<void>> helpers;
  for (int i = 1; i < at::get_num_threads(); ++i) helpers.push_back(std::async(std::launch::async, work));
  work();
  for (auto& helper : helpers) helper.get();
  return hashes;
}

}  // namespace

std::string model_hash(const GraphModule& module) {
  std::string text = print_graph(module.graph());
  for (const auto& [symbol, range] : module.ranges)
    text += fmt::format("{} {} {}\n", symbol, range.min, range.max);
  for (const ShapeGuard& guard : module.guards) text += guard.text + "\n";
  const auto tensors = module.tensors();
  std::vector<at::Tensor> values;
  for (const auto& [name, tensor] : *tensors) values.push_back(tensor);
  const std::vector<std::string> hashes = hash_tensors(values);
  size_t index = 0;
  for (const auto& [name, tensor] : *tensors) {
    text += fmt::format("{} {} [{}] {}\n", name, dtype_name(tensor.scalar_type()),
                        fmt::join(tensor.sizes(), ", "), hashes[index++]);
  }
  return to_hex(sha256(std::as_bytes(std::span(text.data(), text.size()))));
}

}  // namespace halftone
