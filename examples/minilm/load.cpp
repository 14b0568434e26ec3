// Reads the configuration and the weights of the encoder.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "halftone/base/error.h"
#include "halftone/graph/tensor_file.h"
#include "minilm/encoder.h"

namespace minilm {
namespace {

using halftone::Error;
using halftone::ErrorCode;
using halftone::TensorMap;

std::string shape_text(const at::Tensor& tensor) {
  std::string text = std::string(c10::toString(tensor.scalar_type())) + "[";
  for (int64_t i = 0; i < tensor.dim(); ++i) text += (i ? ", " : "") + std::to_string(tensor.size(i));
  return text + "]";
}

/// Puts the file's tensor in the place of a parameter or buffer, without a copy; adds a line to `problems`
/// if it can't.
void replace(const std::string& name, at::Tensor target, const TensorMap& tensors, std::string& problems) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    problems += "\n  missing: " + name;
  } else if (found->second.sizes() != target.sizes() || found->second.scalar_type() != target.scalar_type()) {
    problems += "\n  " + name + ": is " + shape_text(found->second) + ", should be " + shape_text(target);
  } else {
    // Swaps the storage inside the parameter, so that every handle on it (the module's member too) sees the
    // new weight.
    target.set_data(found->second);
  }
}

/// A checkpoint's pooler makes a sentence vector that mean pooling does not use.
bool is_unused(const std::string& name) {
  return name.starts_with("pooler.");
}

}  // namespace

EncoderConfig EncoderConfig::from_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::kNotFound, path + ": can't be opened");
  EncoderConfig config;
  try {
    const nlohmann::json json = nlohmann::json::parse(file);
    json.at("vocab_size").get_to(config.vocab_size);
    json.at("hidden_size").get_to(config.hidden_size);
    json.at("num_hidden_layers").get_to(config.num_hidden_layers);
    json.at("num_attention_heads").get_to(config.num_attention_heads);
    json.at("intermediate_size").get_to(config.intermediate_size);
    json.at("max_position_embeddings").get_to(config.max_position_embeddings);
    json.at("type_vocab_size").get_to(config.type_vocab_size);
    json.at("layer_norm_eps").get_to(config.layer_norm_eps);
    if (json.value("hidden_act", "gelu") != "gelu")
      throw Error(ErrorCode::kUnsupported, path + ": hidden_act is not gelu");
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kCorruptFile, path + ": " + error.what());
  }
  if (config.num_attention_heads < 1 || config.hidden_size % config.num_attention_heads != 0) {
    throw Error(ErrorCode::kCorruptFile, path + ": num_attention_heads does not divide hidden_size");
  }
  return config;
}

Encoder load_encoder(const std::string& folder) {
  const std::string path = folder + "/model.safetensors";
  Encoder encoder(EncoderConfig::from_file(folder + "/config.json"));
  const TensorMap tensors = halftone::load_tensors(path).tensors;

  std::string problems;
  auto targets = encoder->named_parameters();
  targets.update(encoder->named_buffers());
  for (auto& item : targets) {
    item.value().requires_grad_(false);
    replace(item.key(), item.value(), tensors, problems);
  }
  for (const auto& [name, tensor] : tensors) {
    if (!is_unused(name) && !targets.contains(name)) problems += "\n  unknown: " + name;
  }
  if (!problems.empty())
    throw Error(ErrorCode::kInvalidArgument, path + " does not fit the encoder:" + problems);
  encoder->eval();
  return encoder;
}

}  // namespace minilm
