// The kinds of lifecycle backends: the built-in ones, their configs, and the interface for custom ones.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/graph/graph_module.h"
#include "halftone/graph/sample.h"
#include "halftone/quant/config.h"

namespace halftone {

/// A prepared model: its executor, and the module that belongs to it.
struct ReadyModel {
  std::shared_ptr<GraphModule> module;
  std::shared_ptr<const GraphExecutor> executor;  ///< nullptr: the interpreter
};

/// Prepares a model: the part of a backend that differs from recipe to recipe. Backend handles states
/// and threads (backend.h). Immutable and thread-safe.
class HALFTONE_API BackendRecipe {
 public:
  virtual ~BackendRecipe() = default;
  virtual std::string type() const = 0;    ///< "QuantBackend"; stands in files
  virtual std::string config() const = 0;  ///< a JSON object, keys sorted, no spaces, every field
  /// The fields that differ from the defaults: "quantization_config=Int8WeightOnlyConfig()".
  virtual std::string describe_config() const = 0;
  /// Converts and compiles. `original` is not changed; if it is converted already (loaded from a file) it is
  /// used as it is. Only the sizes of samples matter: a recipe may plan for them, but runs none.
  virtual ReadyModel prepare(const std::shared_ptr<const GraphModule>& original,
                             const std::vector<Sample>& samples, const std::string& cache_dir) const = 0;
  /// Why such a backend cannot be saved; empty: it can.
  virtual std::string refuse_to_save() const { return {}; }
};

struct BackendType {
  std::string type;
  std::string what;  ///< one-line description
  /// kInvalidArgument for fields and values that the type does not know.
  std::function<std::shared_ptr<const BackendRecipe>(std::string_view config_json)> make;
  /// Why no file may name this type, because its config is a permission that only a caller can give; empty:
  /// files may. Checked before the file's config is read.
  std::string not_from_files = {};
};
/// kInvalidArgument if the type is taken or empty. Thread-safe, as all here.
HALFTONE_API void register_backend_type(BackendType type);
/// kNotFound with the nearest name.
HALFTONE_API std::shared_ptr<const BackendRecipe> make_backend_recipe(std::string_view type,
                                                                      std::string_view config_json = "{}");
HALFTONE_API std::vector<BackendType> backend_types();  ///< by name

/// The interpreter: operator by operator, as PyTorch would. "EagerBackend".
HALFTONE_API std::shared_ptr<const BackendRecipe> eager_backend_recipe();
/// TorchScript. "TorchScriptBackend".
HALFTONE_API std::shared_ptr<const BackendRecipe> torch_script_backend_recipe();

struct HalftoneBackendConfig {
  enum class Precision { kFloat32, kBFloat16 };
  Precision precision = Precision::kFloat32;  ///< of the linears' weights
  int threads = 0;                            ///< of one call, at most; 0: as many as ATen has
};
/// "HalftoneBackend".
HALFTONE_API std::shared_ptr<const BackendRecipe> halftone_backend_recipe(
    const HalftoneBackendConfig& config = {});

/// Exactly one of the two, else kInvalidArgument.
struct QuantBackendConfig {
  /// "int8wo", "int8dq", "int4wo", "fp8wo", "fp8dq" or another scheme.
  std::optional<std::string> quantization;
  std::optional<QuantConfig> quantization_config;
};
/// quantize_, then the halftone compiler. No config at all: fp8wo. "QuantBackend".
HALFTONE_API std::shared_ptr<const BackendRecipe> quant_backend_recipe();
HALFTONE_API std::shared_ptr<const BackendRecipe> quant_backend_recipe(const QuantBackendConfig& config);

struct AotInductorBackendConfig {
  std::string package;      ///< a .pt2 with a compiled library
  bool allow_code = false;  ///< must be true: the package is machine code, and runs with your permissions
};
/// A model that torch.compile's AOTInductor made. Cannot be saved. "AotInductorBackend".
HALFTONE_API std::shared_ptr<const BackendRecipe> aot_inductor_backend_recipe(
    const AotInductorBackendConfig& config);

}  // namespace halftone
