// Shared by the built-in recipes: reading configs, and preparing graphs.
#pragma once

#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "halftone/backend/recipes.h"

namespace halftone::lifecycle {

/// A JSON object that holds known fields only; else kInvalidArgument, naming the type and the nearest field.
nlohmann::json parse_config(std::string_view type, std::string_view json,
                            std::initializer_list<std::string_view> known);

/// The halftone compiler's work, planned for the samples' sizes.
ReadyModel compiled(std::shared_ptr<GraphModule> module, const std::vector<Sample>& samples, int threads = 0);

/// A copy of the module, quantized. One that is quantized already with this config is taken as it is: layers
/// that were kept then are kept.
std::shared_ptr<GraphModule> quantized_copy(const GraphModule& original, const QuantConfig& config);

/// The recipes that are there from the start.
std::vector<BackendType> eager_backend_types();
std::vector<BackendType> halftone_backend_types();
std::vector<BackendType> quant_backend_types();
std::vector<BackendType> aot_inductor_backend_types();

}  // namespace halftone::lifecycle
