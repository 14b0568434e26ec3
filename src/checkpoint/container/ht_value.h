// Arguments of a model as .ht files hold them: tensors with their bytes or only their shapes, plain values,
// tuples, lists and dicts of them. Without torch.
#pragma once

#include <complex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "checkpoint/container/ht_file.h"

namespace halftone {

/// A tensor whose content is not in the file.
struct HtShape {
  DType dtype;
  std::vector<int64_t> sizes;
};

struct HtValue;

struct HtNested {
  enum class Kind { kTuple, kList, kDict };
  Kind kind;
  std::vector<std::string> keys;  ///< of a dict, each once; else empty
  std::vector<HtValue> items;
};

struct HtValue {
  /// monostate: None. A string is text, of any bytes. A record's tensor is in the file.
  std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string, HtRecord, HtShape,
               HtNested>
      value;
};

nlohmann::json value_json(const HtValue& value);
HtValue value_of(const JsonCursor& place);

/// One call.
struct HtSample {
  std::vector<HtValue> args;
  std::vector<std::pair<std::string, HtValue>> kwargs;  ///< each name once
};

nlohmann::json samples_json(const std::vector<HtSample>& samples);
std::vector<HtSample> samples_of(const JsonCursor& place);

/// The records in it, in order.
void collect_records(const HtValue& value, std::vector<const HtRecord*>& records);
std::vector<const HtRecord*> records_in(const std::vector<HtSample>& samples);

/// For display: "F32[2, 3], flag=true, (F32[1], None)". Without the file, tensors in it are known by name
/// only; with it: kCorruptFile if one does not fit.
std::string describe(const HtSample& sample, const HtFile* file = nullptr);

}  // namespace halftone
