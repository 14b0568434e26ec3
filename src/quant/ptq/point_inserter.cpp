#include "quant/ptq/point_inserter.h"

#include "graph/rewrite/layout.h"

namespace halftone::ptq {

std::optional<TensorMeta> with_dtype(std::optional<TensorMeta> meta, c10::ScalarType dtype) {
  if (!meta) return meta;
  meta->dtype = dtype;
  meta->requires_grad = false;
  const bool channels_last =
      meta->sizes.size() >= 4 && meta->strides.size() == meta->sizes.size() && meta->strides[1] == SymExpr(1);
  if (!channels_last) meta->strides = contiguous_strides_or_none(meta->sizes);
  return meta;
}

PointInserter::PointInserter(std::shared_ptr<GraphModule> module)
    : module_(std::move(module)), graph_(module_->mutable_graph()) {
  int64_t position = 0;
  for (const auto& node : graph_.nodes()) order_[node.get()] = position++;
  order_[&graph_.return_node()] = position;
}

Node* PointInserter::copied(const Node& node) const {
  return graph_.value(node.output()->name())->producer();
}

Value* PointInserter::insert_before(Node* before, std::string_view target, std::vector<NamedArgument> inputs,
                                    const std::string& name, std::optional<TensorMeta> meta,
                                    const Source& source) {
  OutputSpec spec{.name = name, .meta = std::move(meta)};
  return graph_
      .insert(before == &graph_.return_node() ? nullptr : before, target, std::move(inputs),
              {std::move(spec)}, source)
      ->output();
}

Node* PointInserter::first_reader(const Value& value, const std::vector<Node*>& readers) const {
  Node* first = nullptr;
  for (Node* each : readers.empty() ? value.users() : readers) {
    const auto place = order_.find(each);
    if (place == order_.end()) continue;  // a node of ours
    if (first == nullptr || place->second < order_.at(first)) first = each;
  }
  return first;
}

void PointInserter::insert_points(const std::vector<ObservedPoint>& points) {
  for (const bool outputs : {true, false}) {
    for (const ObservedPoint& point : points) {
      if (point.is_output == outputs) insert_point(point);
    }
  }
}

void PointInserter::insert_point(const ObservedPoint& point) {
  Value* value = graph_.value(point.value->name());
  if (const auto replaced = replaced_.find(value); replaced != replaced_.end()) value = replaced->second;
  std::vector<Node*> readers;
  for (const Node* reader : point.readers) readers.push_back(copied(*reader));
  Node* before = first_reader(*value, readers);
  if (before == nullptr) return;  // it has no reader
  const Source source = value->producer() != nullptr ? value->producer()->source() : before->source();
  const Inserted inserted = insert_at(point, value, before, source);
  if (!point.is_output) {
    for (Node* reader : readers) reader->replace_uses_of(value, inserted.result);
    return;
  }
  graph_.replace_all_uses(value, inserted.result);
  inserted.first->set_input(0, value);
  replaced_[value] = inserted.result;
}

}  // namespace halftone::ptq
