// Single weights: what quantize_ does to the layers of a Python module. The layer then calls an operator on plain tensors.
#include "api.h"
#include "halftone/base/error.h"
#include "halftone/quant/weight_format.h"

namespace halftone::python {
namespace {

py::object to_python(const Argument& argument) {
  return std::visit(
      [](const auto& value) -> py::object {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, Argument::None>) {
          return py::none();
        } else if constexpr (std::is_same_v<Value, bool> || std::is_same_v<Value, int64_t> ||
                             std::is_same_v<Value, double> || std::is_same_v<Value, std::string> ||
                             std::is_same_v<Value, c10::ScalarType>) {
          return py::cast(value);
        } else {
          throw Error(ErrorCode::kUnsupported,
                      "an operator of a weight format has a constant that Python cannot pass");
        }
      },
      argument.data());
}

/// (operator's name, constant arguments)
py::tuple to_python(const FormatOp& op) {
  py::dict constants;
  for (const NamedArgument& argument : op.constants)
    constants[py::str(argument.name)] = to_python(argument.value);
  return py::make_tuple(op.target, constants);
}

QuantizedWeight weight_of(const QuantConfig& config, const std::vector<int64_t>& sizes, c10::ScalarType dtype,
                          const py::dict& parts) {
  QuantizedWeight weight{config, format_of(config), sizes, dtype, {}};
  for (const auto& [name, tensor] : parts)
    weight.parts.emplace_back(name.cast<std::string>(), tensor.cast<at::Tensor>());
  return weight;
}

py::dict quantize(const at::Tensor& weight, const QuantConfig& config, const std::string& layer) {
  const QuantizedWeight quantized = [&] {
    const WithoutGil no_gil;
    return quantize_weight(weight, config, layer);
  }();
  py::dict parts;
  for (const auto& [name, tensor] : quantized.parts) parts[py::str(name)] = tensor;
  py::dict result;
  result["parts"] = parts;
  result["bytes"] = quantized.bytes();
  result["linear"] = to_python(quantized.format->linear_op(quantized));
  if (quantized.format->has_embedding())
    result["embedding"] = to_python(quantized.format->embedding_op(quantized));
  return result;
}

}  // namespace

void bind_weights(py::module_& m) {
  m.def("quantize_weight", &quantize, py::arg("weight"), py::arg("config"), py::arg("layer"),
        "The parts of a weight by name, and the operators that take them.");
  m.def(
      "dequantize_weight",
      [](const QuantConfig& config, const std::vector<int64_t>& sizes, c10::ScalarType dtype,
         const py::dict& parts) {
        const QuantizedWeight weight = weight_of(config, sizes, dtype, parts);
        const WithoutGil no_gil;
        return weight.format->dequantize(weight).to(dtype);
      },
      py::arg("config"), py::arg("sizes"), py::arg("dtype"), py::arg("parts"));
  m.def(
      "refuse_weight",
      [](const QuantConfig& config, int64_t n, int64_t k) {
        return config.is_noquant() ? "" : format_of(config)->refuse(n, k);
      },
      py::arg("config"), py::arg("n"), py::arg("k"),
      "Why a weight of these sizes cannot have this config; empty: it can.");
  m.def(
      "has_embedding",
      [](const QuantConfig& config) { return !config.is_noquant() && format_of(config)->has_embedding(); },
      py::arg("config"));
}

}  // namespace halftone::python
