// Packages of AOTInductor as a lifecycle backend: a .pt2 whose model is a compiled library.
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <nlohmann/json.hpp>

#include "backend/lifecycle/recipe_config.h"
#include "base/errors.h"
#include "graph/aten/torch_errors.h"
#include "graph/run/mutation.h"

namespace halftone {
namespace {

constexpr const char* kType = "AotInductorBackend";
constexpr const char* kNotInFiles =
    "it is made of machine code in another file, and checkpoints hold neither code nor paths";

/// Packages of CUDA wheels are linked with libtorch.so, which nothing else here needs, and do not say where
/// it is: beside libtorch_cpu. If it is not needed or not there, nothing happens.
void load_whole_torch() {
  static const bool tried = [] {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&at::get_num_threads), &info) == 0 || info.dli_fname == nullptr)
      return false;
    const std::string library = info.dli_fname;
    const std::string folder = library.substr(0, library.rfind('/') + 1);
    return dlopen((folder + "libtorch.so").c_str(), RTLD_LAZY | RTLD_GLOBAL) != nullptr;
  }();
  (void)tried;
}

/// Such a model has its weights inside and takes tensors only. The library lets calls of several threads take
/// turns.
class PackagedGraph final : public GraphExecutor {
 public:
  PackagedGraph(std::shared_ptr<const Graph> graph, const std::string& package)
      : graph_(std::move(graph)), package_(package), loader_(package) {}

  std::vector<c10::IValue> run(const ExecutorCall& call) const override {
    std::vector<at::Tensor> tensors;
    for (const c10::IValue& input : call.inputs) {
      if (input.isTensor()) tensors.push_back(input.toTensor());
    }
    const std::vector<at::Tensor> results = loader_.run(tensors);
    if (results.size() != graph_->outputs().size()) {
      fail(ErrorCode::kInvalidArgument, "{} gives {} results, the model has {}: it was made of another model",
           package_, results.size(), graph_->outputs().size());
    }
    return {results.begin(), results.end()};
  }
  const Graph& graph() const override { return *graph_; }

 private:
  std::shared_ptr<const Graph> graph_;
  std::string package_;
  mutable torch::inductor::AOTIModelPackageLoader loader_;
};

void require_pure(const GraphModule& module) {
  if (!mutated_tensor_names(module.graph()).empty() || !module.mutated_input_names().empty())
    fail(ErrorCode::kUnsupported,
         "{}: a model that writes to its buffers or inputs cannot run from a package", module.name);
}

class AotInductorRecipe final : public BackendRecipe {
 public:
  explicit AotInductorRecipe(AotInductorBackendConfig config) : config_(std::move(config)) {
    if (config_.package.empty()) fail(ErrorCode::kInvalidArgument, "config of {}: package is missing", kType);
    if (!config_.allow_code) {
      fail(ErrorCode::kInvalidArgument,
           "config of {}: {} is machine code and would run with your rights; allow_code must be true", kType,
           config_.package);
    }
  }
  std::string type() const override { return kType; }
  std::string config() const override {
    return nlohmann::json{{"allow_code", config_.allow_code}, {"package", config_.package}}.dump();
  }
  std::string describe_config() const override {
    return fmt::format("package={}, allow_code=true", config_.package);
  }
  std::string refuse_to_save() const override { return kNotInFiles; }
  ReadyModel prepare(const std::shared_ptr<const GraphModule>& original, const std::vector<Sample>&,
                     const std::string&) const override {
    require_pure(*original);
    auto module = original->clone();
    auto executor = load(module->graph().clone());
    return {std::move(module), std::move(executor)};
  }

 private:
  std::shared_ptr<const GraphExecutor> load(std::shared_ptr<const Graph> graph) const {
    try {
      load_whole_torch();
      return std::make_shared<const PackagedGraph>(std::move(graph), config_.package);
    } catch (const std::exception& error) {
      fail(ErrorCode::kInvalidArgument, "{}: {}", config_.package, error_text(error));
    }
  }
  AotInductorBackendConfig config_;
};

AotInductorBackendConfig parse(std::string_view json) {
  const nlohmann::json fields = lifecycle::parse_config(kType, json, {"allow_code", "package"});
  const nlohmann::json package = fields.value("package", nlohmann::json(""));
  const nlohmann::json allow_code = fields.value("allow_code", nlohmann::json(false));
  if (!package.is_string() || !allow_code.is_boolean())
    fail(ErrorCode::kInvalidArgument, "config of {}: package must be a string, allow_code true or false",
         kType);
  return {package.get<std::string>(), allow_code.get<bool>()};
}

}  // namespace

std::shared_ptr<const BackendRecipe> aot_inductor_backend_recipe(const AotInductorBackendConfig& config) {
  return std::make_shared<const AotInductorRecipe>(config);
}

std::vector<BackendType> lifecycle::aot_inductor_backend_types() {
  return {{kType, "a package that AOTInductor compiled; runs foreign machine code",
           [](std::string_view json) { return aot_inductor_backend_recipe(parse(json)); }, kNotInFiles}};
}

}  // namespace halftone
