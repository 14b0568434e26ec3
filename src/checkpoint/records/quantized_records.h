// Quantized weights of C++ modules in .ht files: a config, and the plain parts as tensors.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/container/ht_file.h"
#include "checkpoint/records/stored_tensors.h"
#include "halftone/quant/weight_format.h"

namespace halftone {

/// A quantized parameter as the file has it.
struct QuantizedRecord {
  std::string name;    ///< of the parameter
  std::string config;  ///< canonical JSON
  std::vector<int64_t> sizes;
  DType dtype = DType::kFloat32;
  std::vector<HtRecord> parts;  ///< named as the operator's arguments
};

nlohmann::json quantized_json(const std::vector<QuantizedRecord>& records);
std::vector<QuantizedRecord> read_quantized(const HtMetadata& metadata);

/// Makes quantized weights of records. Records that name the same stored tensors give one weight.
class QuantizedRestorer {
 public:
  /// Borrows both.
  QuantizedRestorer(const HtFile& file, TensorRestorer& tensors) : file_(file), tensors_(tensors) {}
  /// kCorruptFile if the parts do not fit the config; kUnsupported if this process does not know its
  /// type.
  const QuantizedWeight& restore(const QuantizedRecord& record);

 private:
  const HtFile& file_;
  TensorRestorer& tensors_;
  std::map<std::string, QuantizedWeight> made_;
};

}  // namespace halftone
