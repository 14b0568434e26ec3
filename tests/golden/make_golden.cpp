// Writes golden files that are not there yet: NAME.ht and NAME.expected.safetensors. Never overwrites one:
// old files are the promise that every later version reads them.
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <filesystem>
#include <functional>

#include "backend/lifecycle/backend_access.h"
#include "golden_models.h"
#include "halftone/backend/backend.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/graph/tensor_file.h"
#include "halftone/quant/quantize.h"

namespace halftone::golden {
namespace {

using Path = std::filesystem::path;

/// The model's result and its tensors as they were before saving: Python compares the latter with what it
/// reads.
void save_expected(const Path& file, const at::Tensor& output, TensorMap weights) {
  TensorMap all = {{"output", output.detach()}};
  for (auto& [name, tensor] : weights) all.emplace("weight/" + name, tensor.detach());
  save_tensors(file.string(), all);
}

void make_graph(const Path& file, const Path& expected, const char* scheme, bool packed) {
  const auto module = graph();
  if (scheme != nullptr) quantize_(*module, scheme);
  save_expected(expected, Session(module).run({input()}).at(0).toTensor(), *module->tensors());
  save_checkpoint(*module, file.string(), {.packed = packed});
}

void make_module(const Path& file, const Path& expected, const char* scheme) {
  auto network = module();
  const c10::AutoGradMode no_grad(false);
  TensorMap weights;
  for (auto& item : network->named_parameters()) {
    item.value().copy_(pattern(item.value().sizes(), 3));
    weights[item.key()] = item.value().clone();
  }
  if (scheme != nullptr) {
    quantize_(*network, scheme);
    weights.erase("0.weight");
  }
  save_expected(expected, network->forward(input()), weights);
  save_module(*network, file.string());
}

/// With a made-up tuning record: a measured one would differ from run to run.
void make_backend(const Path& file, const Path& expected, const SaveBackendOptions& options) {
  const auto recipe = quant_backend_recipe({.quantization = "int8dq", .quantization_config = {}});
  Backend backend(recipe);
  backend.build(graph(), {.name = "golden"}, {{{input()}, {}}});
  BackendAccess::set_tuning(backend,
                            R"({"chosen":"int8dq","cpu":"a CPU of 1999","strategy":"max_throughput"})");
  save(backend, file.string(), options);
  const auto stored = load_checkpoint(file.string());
  save_expected(expected, backend.infer({input()}).toTensor(), *stored->tensors());
}

int make_all(const Path& folder) {
  const auto make = [&](const std::string& name, const std::function<void(const Path&, const Path&)>& write) {
    const Path file = folder / (name + ".ht");
    const Path expected = folder / (name + ".expected.safetensors");
    if (std::filesystem::exists(file)) {
      fmt::print("{}: kept\n", file.string());
      return;
    }
    write(file, expected);
    fmt::print("{}: made\n", file.string());
  };
  make("v2_graph_fp32", [](auto& file, auto& expected) { make_graph(file, expected, nullptr, false); });
  make("v2_graph_int8dq_packed",
       [](auto& file, auto& expected) { make_graph(file, expected, "int8dq", true); });
  make("v2_backend_int8dq", [](auto& file, auto& expected) { make_backend(file, expected, {}); });
  make("v2_backend_original", [](auto& file, auto& expected) {
    make_backend(file, expected, {.original = true, .sample_data = true});
  });
  make("v2_module_int8dq", [](auto& file, auto& expected) { make_module(file, expected, "int8dq"); });
  return 0;
}

}  // namespace
}  // namespace halftone::golden

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: make_golden FOLDER\n");
    return 2;
  }
  try {
    return halftone::golden::make_all(argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "make_golden: {}\n", error.what());
    return 1;
  }
}
