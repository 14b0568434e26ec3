#include "autograd/decompositions/cases/recorder.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>

#include <set>

#include "capture/module/tracing/tracing_key.h"
#include "graph/aten/key_registration.h"

namespace halftone {
namespace {

constexpr c10::DispatchKey kKey = tracing_key(TraceLevel::kBelowAutograd);

struct Recording {
  Expansion expansion;
  std::set<const c10::TensorImpl*> known;
  std::vector<at::Tensor> kept;  ///< so that no address is used twice
};

Recording* current = nullptr;

void learn(const c10::IValue& value) {
  if (value.isTensor() && value.toTensor().defined()) {
    current->kept.push_back(value.toTensor());
    current->known.insert(value.toTensor().unsafeGetTensorImpl());
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) learn(element);
  }
}

bool is_known(const c10::IValue& value) {
  if (value.isTensor() && value.toTensor().defined()) {
    return current->known.contains(value.toTensor().unsafeGetTensorImpl());
  }
  if (!value.isList()) return true;
  const auto& elements = value.toListRef();
  return std::all_of(elements.begin(), elements.end(), is_known);
}

std::string name_of(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

void listen(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const std::string name = name_of(op);
  Expansion& expansion = current->expansion;
  expansion.operators.push_back(name);
  const c10::FunctionSchema& schema = op.schema();
  if (schema.is_mutable()) expansion.faults.push_back(fmt::format("{} writes to an operand", name));
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) {
    expansion.faults.push_back(fmt::format("{} is composite", name));
  }
  const auto operands = torch::jit::last(*stack, schema.arguments().size());
  if (!std::all_of(operands.begin(), operands.end(), is_known)) {
    expansion.faults.push_back(fmt::format("{} takes a tensor from nowhere", name));
  }
  c10::impl::ExcludeDispatchKeyGuard silence(kKey);
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey), stack);
  for (const c10::IValue& result : torch::jit::last(*stack, schema.returns().size())) learn(result);
}

/// Once: it takes 5 ms, and the key is off in all threads that do not ask for it.
void register_listener() {
  static const KeyRegistration registered =
      register_at_key(kKey, c10::KernelFunction::makeFromBoxedFunction<&listen>());
}

}  // namespace

Expansion expand(const Decomposition& decomposition, const Case& call) {
  register_listener();
  Recording recording;
  current = &recording;
  torch::jit::Stack stack;
  for (const c10::IValue& operand : call.operands) {
    const bool is_tensor = operand.isTensor() && operand.toTensor().defined();
    stack.push_back(is_tensor ? c10::IValue(operand.toTensor().detach()) : operand);
    learn(stack.back());
  }
  {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    c10::impl::IncludeDispatchKeyGuard listening(kKey);
    decomposition(stack);
  }
  for (const c10::IValue& result : stack) {
    if (!is_known(result)) recording.expansion.faults.push_back("a result comes from nowhere");
  }
  current = nullptr;
  recording.expansion.results = std::move(stack);
  return std::move(recording.expansion);
}

}  // namespace halftone
