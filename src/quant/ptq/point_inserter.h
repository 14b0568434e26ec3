// Puts nodes where values are observed, on a copy of a prepared model: quantize and dequantize pairs
// (convert), or fake quantization (training).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quant/ptq/ptq_state.h"

namespace halftone::ptq {

/// Of a quantized value, or of what is made of it: dense, in the memory format of the original.
std::optional<TensorMeta> with_dtype(std::optional<TensorMeta> meta, c10::ScalarType dtype);

class PointInserter {
 public:
  virtual ~PointInserter() = default;

 protected:
  /// `module`: a clone of the prepared model's.
  explicit PointInserter(std::shared_ptr<GraphModule> module);

  /// What was put at a point: the node that reads the value, and the value that its readers get.
  struct Inserted {
    Node* first;
    Value* result;
  };
  virtual Inserted insert_at(const ObservedPoint& point, Value* value, Node* before,
                             const Source& source) = 0;

  /// In the order that lets readers with a wish of their own take theirs from what the result became.
  void insert_points(const std::vector<ObservedPoint>& points);
  /// `before` may be the return node.
  Value* insert_before(Node* before, std::string_view target, std::vector<NamedArgument> inputs,
                       const std::string& name, std::optional<TensorMeta> meta, const Source& source);
  /// A node of the prepared model, in the copy.
  Node* copied(const Node& node) const;

  std::shared_ptr<GraphModule> module_;
  Graph& graph_;

 private:
  Node* first_reader(const Value& value, const std::vector<Node*>& readers) const;
  void insert_point(const ObservedPoint& point);

  std::unordered_map<const Node*, int64_t> order_;
  std::unordered_map<const Value*, Value*> replaced_;
};

}  // namespace halftone::ptq
