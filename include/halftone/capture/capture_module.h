// Capture of any C++ torch::nn::Module, or any function on tensors, as a GraphModule.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "halftone/base/api.h"
#include "halftone/graph/graph_module.h"

namespace torch::nn {
class Module;
}

namespace halftone {

/// A dimension of an input that may have another size in each call.
struct HALFTONE_API DynamicDim {
  std::string input;   ///< "input0", or its name in CaptureOptions::input_names
  int64_t dim = 0;     ///< from the end where negative
  std::string symbol;  ///< "batch"; dimensions with the same symbol have the same size
  int64_t min = 1;
  int64_t max = std::numeric_limits<int64_t>::max();
};

struct CaptureOptions {
  std::string name;                      ///< of the graph, for messages; empty: the module's type
  std::vector<std::string> input_names;  ///< of the tensors among the arguments; empty: input0, input1, …
  /// Operators ("aten::dropout", "aten::item") whose results may become constants although they would differ
  /// from call to call: random numbers, numbers and sizes that depend on data, moves to other devices. All
  /// others are refused, with the layer. GraphModule::notes lists what became constant.
  std::vector<std::string> allow;
  /// Random draws are nodes, which draw anew in each run; else they are refused as above.
  bool keep_random = false;
  std::vector<DynamicDim> dynamic;
  /// Arguments of other sizes: dimensions whose sizes differ are dynamic. Their symbols are s0, s1, … unless
  /// `dynamic` names them.
  std::vector<std::vector<c10::IValue>> more_examples;
  /// Try to make every dimension of the inputs dynamic (those of size 1 stay), equal sizes at the same place
  /// together, and keep what works; the symbols are s0, s1, …. Costs some runs for each. GraphModule::notes
  /// says why others stay fixed.
  bool find_dynamic = false;
  /// Run the model once more with other data and refuse where it does something else; run the graph on the
  /// examples and compare it with the model. GraphModule::notes says what could not be tried.
  bool check = true;
};

/// Calls the model with arguments nested as the examples are.
using ForwardFunction = std::function<c10::IValue(const std::vector<c10::IValue>& args)>;

/// Runs the model on the examples, without gradients, and records its operators above autograd, as
/// torch.export does.
///
/// The graph is pure: writes to temporaries are gone, and writes to inputs, buffers and parameters are
/// outputs of it, which a Session applies. Parameters and buffers have their qualified names and are shared
/// with the module. The module is left as it was: its tensors' memory, gradients, flags, and the random
/// state. Members that are not tensors, and handles that forward() assigns to, cannot be restored.
///
/// Arguments and results: tensors, lists, tuples, dicts with string keys, None, numbers, strings. An argument
/// that is not a tensor is fixed: calls must give the same one.
///
/// What the code tells only autograd is not in the graph: functions with a backward of their own, parts
/// under NoGradGuard. To train such a model, give it to compile() or AotAutograd itself, not its graph.
///
/// C++ modules have no hooks. A node's layer is the one whose parameters it reads, else the innermost one
/// around its neighbours; CaptureScope says it exactly.
///
/// Branches on sizes are followed as the examples go. Elements that C++ reads past torch (data_ptr,
/// accessors, other threads) are not seen, but found out and refused by CaptureOptions::check; writes that
/// way are always refused.
///
/// kUnsupported, naming operator and layer, for operations that a graph cannot represent; kInvalidArgument if
/// the model itself fails. Captures of several threads wait for each other; no other thread may use the
/// module meanwhile.
HALFTONE_API std::shared_ptr<GraphModule> capture(torch::nn::Module& module, const ForwardFunction& forward,
                                                  std::vector<c10::IValue> examples,
                                                  const CaptureOptions& options = {});
/// A function; tensors that it uses beside its arguments are constants.
HALFTONE_API std::shared_ptr<GraphModule> capture(const ForwardFunction& function,
                                                  std::vector<c10::IValue> examples,
                                                  const CaptureOptions& options = {});

/// Put at the beginning of a forward(): `halftone::CaptureScope scope(*this);`. Nodes made while it lives
/// belong to that module, or to those inside it. Does nothing if no capture runs.
class HALFTONE_API CaptureScope {
 public:
  explicit CaptureScope(const torch::nn::Module& module);
  ~CaptureScope();
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

 private:
  bool active_;
};

namespace capture_detail {

template <typename T>
struct IsMap : std::false_type {};
template <typename V>
struct IsMap<std::map<std::string, V>> : std::true_type {};
template <typename V>
struct IsMap<std::unordered_map<std::string, V>> : std::true_type {};

template <typename T>
c10::IValue to_ivalue(const T& value) {
  if constexpr (IsMap<T>::value) {
    c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
    for (const auto& [key, item] : value) dict.insert(key, to_ivalue(item));
    return dict;
  } else {
    return c10::IValue(value);
  }
}

template <typename T>
T from_ivalue(const c10::IValue& value) {
  if constexpr (IsMap<T>::value) {
    T map;
    for (const auto& item : value.toGenericDict())
      map.emplace(item.key().toStringRef(), from_ivalue<typename T::mapped_type>(item.value()));
    return map;
  } else if constexpr (std::is_same_v<T, c10::IValue>) {
    return value;
  } else {
    return value.to<T>();
  }
}

template <typename Model, typename... Inputs, size_t... I>
std::shared_ptr<GraphModule> capture_forward(Model& model, const std::tuple<Inputs...>& examples,
                                             const CaptureOptions& options, std::index_sequence<I...>) {
  const auto forward = [&model](const std::vector<c10::IValue>& args) -> c10::IValue {
    return to_ivalue(model.forward(from_ivalue<Inputs>(args.at(I))...));
  };
  return capture(static_cast<torch::nn::Module&>(model), ForwardFunction(forward),
                 {to_ivalue(std::get<I>(examples))...}, options);
}

}  // namespace capture_detail

/// model.forward(examples…), whatever its overloads, templates and defaults: `capture(*model, std::tuple(ids,
/// mask))`. The examples have the types that forward takes: tensors, vectors, tuples, optionals, numbers,
/// maps from strings. For other types, give a ForwardFunction.
template <typename Model, typename... Inputs>
std::shared_ptr<GraphModule> capture(Model& model, const std::tuple<Inputs...>& examples,
                                     const CaptureOptions& options = {}) {
  return capture_detail::capture_forward(model, examples, options, std::index_sequence_for<Inputs...>());
}

}  // namespace halftone
