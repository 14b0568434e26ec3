// Convolutions, linears, and what is fused with them.
#include "quant/backend_config/builtin.h"

namespace halftone::backend_config {
namespace {

const std::string kNn = "torch.nn.";
const std::string kFunctional = "torch.nn.functional.";
const std::string kIntrinsic = "torch.ao.nn.intrinsic.";
const std::string kReference = "torch.ao.nn.quantized.reference.";
const std::string kQat = "torch.ao.nn.qat.";
const std::string kFuse = "torch.ao.quantization.fuse_";
const std::vector<std::string> kRelus = {kNn + "ReLU", kFunctional + "relu"};
const std::map<std::string, int64_t> kWeightAndBias = {{"weight", 1}, {"bias", 2}};

BackendPatternConfig with(Pattern pattern, const DTypes& dtypes) {
  return BackendPatternConfig(std::move(pattern)).set_dtype_configs(dtypes);
}

/// A module that becomes a reference module of its root's kind.
BackendPatternConfig rooted(Pattern pattern, const std::string& root, const DTypes& dtypes) {
  return with(std::move(pattern), dtypes)
      .set_root_module(kNn + root)
      .set_reference_quantized_module(kReference + root);
}

BackendPatternConfig fused(std::vector<std::string> sequence, const std::string& into,
                           const std::string& method, const DTypes& dtypes) {
  return with(Pattern::sequence(sequence), dtypes)
      .set_fused_module(kIntrinsic + into)
      .set_fuser_method(method);
}

/// The module, its twin for training, its functional, and each with a relu after it.
void add_root(Configs& list, const std::string& root, const std::string& functional,
              const std::string& with_relu, const DTypes& dtypes) {
  list.push_back(rooted(kNn + root, root, dtypes).set_qat_module(kQat + root));
  list.push_back(rooted(kQat + root, root, dtypes));
  list.push_back(with(kFunctional + functional, dtypes).set_input_type_to_index(kWeightAndBias));
  for (const std::string& relu : kRelus) {
    list.push_back(
        fused({kNn + root, relu}, with_relu, "sequential(" + kIntrinsic + with_relu + ")", dtypes));
    list.push_back(with(Pattern::sequence({kFunctional + functional, relu}), dtypes));
  }
}

void add_convolution(Configs& list, const std::string& dims, const DTypes& dtypes) {
  const std::string conv = "Conv" + dims, norm = kNn + "BatchNorm" + dims;
  const std::string relu = "ConvReLU" + dims, bn = "ConvBn" + dims, bn_relu = "ConvBnReLU" + dims;
  add_root(list, conv, "conv" + dims, relu, dtypes);
  list.push_back(fused({kNn + conv, norm}, bn, kFuse + "conv_bn", dtypes));
  for (const std::string& activation : kRelus) {
    list.push_back(fused({kNn + conv, norm, activation}, bn_relu, kFuse + "conv_bn_relu", dtypes));
    if (activation == kRelus.back()) list.back().set_root_module(kNn + conv);
  }
  for (const std::string& module : {relu, bn, bn_relu}) {
    list.push_back(with(kIntrinsic + module, dtypes).set_qat_module(kIntrinsic + "qat." + module));
    list.push_back(rooted(kIntrinsic + "qat." + module, conv, dtypes));
  }
}

void add_transposed(Configs& list, const std::string& dims, const DTypes& dtypes) {
  const std::string conv = "ConvTranspose" + dims;
  list.push_back(rooted(kNn + conv, conv, dtypes));
  list.push_back(rooted(Pattern::sequence({kNn + conv, kNn + "BatchNorm" + dims}), conv, dtypes)
                     .set_fuser_method(kFuse + "convtranspose_bn"));
  list.push_back(with(kFunctional + "conv_transpose" + dims, dtypes).set_input_type_to_index(kWeightAndBias));
}

/// add(product, anything) and add(anything, product), with and without relu.
void add_sums(Configs& list, const std::string& product, const DTypes& dtypes) {
  for (const char* add : {"torch.add", "operator.add"}) {
    const std::string left = "[\"" + std::string(add) + "\", " + product + ", \"*\"]";
    const std::string right = "[\"" + std::string(add) + "\", \"*\", " + product + "]";
    for (const std::string& sum : {left, right}) {
      list.push_back(with(Pattern::from_complex_json(sum), dtypes));
      for (const std::string& relu : kRelus)
        list.push_back(with(Pattern::from_complex_json("[\"" + relu + "\", " + sum + "]"), dtypes));
    }
  }
}

}  // namespace

Configs convolutions(const DTypes& dtypes) {
  Configs list;
  for (const char* dims : {"1d", "2d", "3d"}) {
    add_convolution(list, dims, dtypes);
    add_transposed(list, dims, dtypes);
  }
  return list;
}

Configs linears(const DTypes& dtypes) {
  Configs list;
  add_root(list, "Linear", "linear", "LinearReLU", dtypes);
  list.push_back(fused({kNn + "Linear", kNn + "BatchNorm1d"}, "LinearBn1d", kFuse + "linear_bn", dtypes));
  for (const std::string module : {"LinearReLU", "LinearBn1d"}) {
    list.push_back(
        rooted(kIntrinsic + module, "Linear", dtypes).set_qat_module(kIntrinsic + "qat." + module));
    list.push_back(rooted(kIntrinsic + "qat." + module, "Linear", dtypes));
  }
  return list;
}

Configs sums_after_products(const DTypes& dtypes) {
  Configs list;
  add_sums(list, "\"torch.nn.Linear\"", dtypes);
  for (const std::string dims : {"1d", "2d", "3d"}) {
    add_sums(list, "\"torch.nn.Conv" + dims + "\"", dtypes);
    add_sums(list, "[\"torch.nn.BatchNorm" + dims + "\", \"torch.nn.Conv" + dims + "\"]", dtypes);
  }
  return list;
}

Configs recurrent_layers(const DTypes& dtypes) {
  Configs list;
  for (const char* layer : {"GRUCell", "LSTMCell", "RNNCell", "LSTM", "GRU"})
    list.push_back(rooted(kNn + layer, layer, dtypes));
  return list;
}

Configs embeddings() {
  DTypes dtypes(2);
  for (DTypeConfig& each : dtypes) each.input.dtype = each.output.dtype = ConfigDType::kFloat32;
  dtypes[0].weight.dtype = ConfigDType::kQUInt8;
  dtypes[1].weight.dtype = ConfigDType::kQUInt4x2;
  Configs list;
  for (const char* layer : {"Embedding", "EmbeddingBag"}) {
    list.push_back(rooted(kNn + layer, layer, dtypes).set_qat_module(kQat + layer));
    list.push_back(rooted(kQat + layer, layer, dtypes));
  }
  return list;
}

}  // namespace halftone::backend_config
