#include "checkpoint/records/sample_values.h"

#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "base/errors.h"
#include "graph/aten/dtypes.h"

namespace halftone {
namespace {

using Kind = HtNested::Kind;

void collect_tensors(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) {
    tensors.push_back(value.toTensor());
  } else if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) collect_tensors(item, tensors);
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) collect_tensors(item, tensors);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) collect_tensors(item.value(), tensors);
  }
}

HtNested store_nested(const c10::IValue& value, RecordSource& tensors, const std::string& what) {
  HtNested nested{Kind::kTuple, {}, {}};
  const auto add = [&](const c10::IValue& item) { nested.items.push_back(store_value(item, tensors, what)); };
  if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) add(item);
    return nested;
  }
  if (value.isList()) {
    nested.kind = Kind::kList;
    for (const c10::IValue& item : value.toListRef()) add(item);
    return nested;
  }
  nested.kind = Kind::kDict;
  for (const auto& item : value.toGenericDict()) {
    if (!item.key().isString())
      fail(ErrorCode::kUnsupported, "{} cannot be saved: a dict has a {} as key", what, item.key().tagKind());
    nested.keys.push_back(item.key().toStringRef());
    add(item.value());
  }
  return nested;
}

c10::IValue restore_nested(const HtNested& nested, TensorRestorer& tensors) {
  std::vector<c10::IValue> items;
  for (const HtValue& item : nested.items) items.push_back(restore_value(item, tensors));
  if (nested.kind == Kind::kTuple) return c10::ivalue::Tuple::create(std::move(items));
  if (nested.kind == Kind::kList) {
    c10::impl::GenericList list(c10::AnyType::get());
    for (c10::IValue& item : items) list.push_back(std::move(item));
    return list;
  }
  c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
  for (size_t i = 0; i < items.size(); ++i) dict.insert(nested.keys.at(i), std::move(items[i]));
  return dict;
}

at::Tensor without_data(const HtShape& shape) {
  const c10::InferenceMode normal(false);
  return at::empty(shape.sizes, at::TensorOptions(scalar_type_of(shape.dtype)).device(at::kMeta));
}

}  // namespace

std::vector<at::Tensor> tensors_in(const std::vector<c10::IValue>& values) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : values) collect_tensors(value, tensors);
  return tensors;
}

std::vector<at::Tensor> tensors_in(const std::vector<Sample>& samples) {
  std::vector<at::Tensor> tensors;
  for (const Sample& sample : samples) {
    for (const c10::IValue& value : sample.args) collect_tensors(value, tensors);
    for (const auto& [name, value] : sample.kwargs) collect_tensors(value, tensors);
  }
  return tensors;
}

HtValue RecordSource::next(const at::Tensor& tensor) {
  if (stored_) {
    const HtRecord& record = records_.front();
    records_ = records_.subspan(1);
    return {record};
  }
  const auto dtype = tensor.defined() ? try_dtype_of(tensor.scalar_type()) : std::nullopt;
  if (!dtype) fail(ErrorCode::kUnsupported, "files have no dtype for a sample's tensor");
  return {HtShape{*dtype, tensor.sizes().vec()}};
}

HtValue store_value(const c10::IValue& value, RecordSource& tensors, const std::string& what) {
  if (value.isNone()) return {};
  if (value.isTensor()) return tensors.next(value.toTensor());
  if (value.isBool()) return {value.toBool()};
  if (value.isInt()) return {value.toInt()};
  if (value.isDouble()) return {value.toDouble()};
  if (value.isString()) return {value.toStringRef()};
  if (value.isComplexDouble()) {
    const c10::complex<double> number = value.toComplexDouble();
    return {std::complex<double>(number.real(), number.imag())};
  }
  if (value.isTuple() || value.isList() || value.isGenericDict()) return {store_nested(value, tensors, what)};
  fail(ErrorCode::kUnsupported, "{} cannot be saved: it is a {}", what, value.tagKind());
}

std::vector<HtSample> store_samples(const std::vector<Sample>& samples, RecordSource tensors) {
  std::vector<HtSample> stored;
  for (size_t i = 0; i < samples.size(); ++i) {
    const std::string what = fmt::format("sample {}", i);
    HtSample& sample = stored.emplace_back();
    for (const c10::IValue& value : samples[i].args) sample.args.push_back(store_value(value, tensors, what));
    for (const auto& [name, value] : samples[i].kwargs)
      sample.kwargs.emplace_back(name, store_value(value, tensors, what));
  }
  return stored;
}

c10::IValue restore_value(const HtValue& value, TensorRestorer& tensors) {
  const auto& content = value.value;
  if (const auto* flag = std::get_if<bool>(&content)) return *flag;
  if (const auto* number = std::get_if<int64_t>(&content)) return *number;
  if (const auto* number = std::get_if<double>(&content)) return *number;
  if (const auto* number = std::get_if<std::complex<double>>(&content))
    return c10::complex<double>(number->real(), number->imag());
  if (const auto* text = std::get_if<std::string>(&content)) return *text;
  if (const auto* record = std::get_if<HtRecord>(&content)) return tensors.restore(*record);
  if (const auto* shape = std::get_if<HtShape>(&content)) return without_data(*shape);
  if (const auto* nested = std::get_if<HtNested>(&content)) return restore_nested(*nested, tensors);
  return {};
}

std::vector<Sample> restore_samples(const std::vector<HtSample>& samples, TensorRestorer& tensors) {
  std::vector<Sample> restored;
  for (const HtSample& stored : samples) {
    Sample& sample = restored.emplace_back();
    for (const HtValue& value : stored.args) sample.args.push_back(restore_value(value, tensors));
    for (const auto& [name, value] : stored.kwargs)
      sample.kwargs.emplace(name, restore_value(value, tensors));
  }
  return restored;
}

}  // namespace halftone
