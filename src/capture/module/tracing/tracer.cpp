// Handles each operator that the model calls during a capture. The call is really made, with the
// operands of the model, and recorded as a node on the values that the operands stand for. Writes are
// recorded through their functional forms: compute a new value, copy it into the operand so that the
// running model sees it, and tell the tracker of storages which value the memory now holds. Results that
// depend on data and that C++ code may look at (numbers, sizes) are refused, because the trace would hold
// for this data only.
#include "capture/module/tracing/tracer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <cstring>

#include "base/errors.h"
#include "capture/module/tracing/arguments.h"
#include "capture/module/tracing/geometry.h"
#include "halftone/quant/qat.h"
#include "halftone/quant/quantized_tensor.h"

namespace halftone {

/// What the model called.
struct Tracer::Call {
  const c10::OperatorHandle& op;
  c10::DispatchKeySet keys;  ///< those below ours
  std::string target;
  Values args;

  /// Takes the operands from the stack and puts the results there.
  void run(torch::jit::Stack& stack) const { op.redispatchBoxed(keys, &stack); }
  void finish(torch::jit::Stack& stack, const Values& results) const {
    torch::jit::drop(stack, args.size());
    for (const c10::IValue& result : results) stack.push_back(result);
  }
};

namespace {

bool holds_quantized(const std::vector<c10::IValue>& args) {
  bool found = false;
  for (const c10::IValue& value : args)
    for_each_tensor(value, [&](const at::Tensor& tensor) { found = found || is_quantized_tensor(tensor); });
  return found;
}

/// The state of the default generator: it tells exactly whether a call drew from it. Other threads may draw
/// too, so only operators that can are asked.
class RandomState {
 public:
  RandomState() {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard lock(generator.mutex());
    auto& state = *at::check_generator<at::CPUGeneratorImpl>(generator);
    data_ = state.engine().data();
    normal_ = state.next_float_normal_sample().has_value();
  }
  bool operator==(const RandomState& other) const {
    return normal_ == other.normal_ && data_.next_ == other.data_.next_ && data_.left_ == other.data_.left_ &&
           data_.seed_ == other.data_.seed_ && data_.state_ == other.data_.state_;
  }

 private:
  at::mt19937_data_pod data_;
  bool normal_ = false;
};

bool leaves_cpu(const std::vector<c10::IValue>& outputs) {
  bool found = false;
  for (const c10::IValue& output : outputs)
    for_each_tensor(output, [&](const at::Tensor& tensor) { found = found || !tensor.device().is_cpu(); });
  return found;
}

bool is_uninitialised(std::string_view target) {
  return target.starts_with("aten::empty") || target.starts_with("aten::new_empty");
}

/// A model may switch it on for a part of itself; the graph would lack the conversions.
void check_no_autocast() {
  if (at::autocast::is_autocast_enabled(c10::kCPU)) {
    fail(ErrorCode::kUnsupported,
         "autocast is on, and the graph would lack its conversions: switch it off, and convert the model or "
         "its inputs");
  }
}

OutputSpec spec_of(const c10::IValue& output) {
  if (output.isTensor()) {
    if (!output.toTensor().defined()) return {.type = ValueType::kNone};
    return {.meta = tensor_meta(output.toTensor())};
  }
  if (output.isInt() || output.isSymInt()) return {.type = ValueType::kInt};
  if (output.isDouble()) return {.type = ValueType::kFloat};
  if (output.isBool()) return {.type = ValueType::kBool};
  if (output.isList()) return {.type = ValueType::kList};
  return {.type = ValueType::kNone};
}

/// What runs below autograd is not differentiated: the formulas above it are what backward is made of.
class WithoutAutograd {
 public:
  explicit WithoutAutograd(TraceLevel level) {
    if (level == TraceLevel::kBelowAutograd) guard_.emplace();
  }

 private:
  std::optional<at::AutoDispatchBelowADInplaceOrView> guard_;
};

bool is_composite(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CPU);
}

}  // namespace

const Decomposition* Tracer::try_decomposition(const std::string& target) const {
  if (!options_.decompositions) return nullptr;
  const auto known = options_.decompositions->find(target);
  return known == options_.decompositions->end() ? nullptr : &known->second;
}

// Below autograd only: what decompositions call goes past autograd, so composite operators come whole there.
bool Tracer::take_apart(const Call& call, torch::jit::Stack& stack) {
  const WithoutAutograd guard(options_.level);
  if (const Decomposition* known = try_decomposition(call.target)) {
    (*known)(stack);
    return true;
  }
  if (!is_composite(call.op) || reads_metadata_only(call.op)) return false;
  call.run(stack);
  return true;
}

void Tracer::handle(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack& stack) {
  const size_t count = op.schema().arguments().size();
  Call call{op,
            keys_below(options_.level, keys),
            target_of(op),
            {stack.end() - static_cast<ptrdiff_t>(count), stack.end()}};
  // The kernels of quantized tensors call operators on the parts: those are what the graph is made of.
  // Those of weights in quantization-aware training do so too; inside of them such a weight is an ordinary
  // tensor.
  if (keys.has(kFakeQuantizedKey) || holds_quantized(call.args)) return call.run(stack);
  const bool statistics = updates_statistics(op, call.args);
  // Made of batch norm and copies, which are traced one by one.
  if (statistics && op.operator_name().name == "aten::instance_norm") return call.run(stack);
  if (options_.level == TraceLevel::kBelowAutograd && !statistics && take_apart(call, stack)) return;
  // What the kernels call inside must not be recorded a second time.
  const PauseTracing pause;
  const WithoutAutograd guard(options_.level);
  place_ = recorder_.place();
  last_target_ = call.target;
  try {
    if (options_.level == TraceLevel::kAboveAutograd) check_no_autocast();
    if (reads_metadata_only(op) || op.operator_name().name == "aten::requires_grad_") return call.run(stack);
    if (statistics) return record_statistics(call, stack);
    if (changes_geometry(op)) return record_geometry(call, stack);
    if (op.schema().is_mutable()) return record_write(call, stack);
    record(call, stack);
  } catch (const Error& error) {
    if (place_.empty()) throw;
    throw error.with_context(fmt::format("{} in {}", call.target, place_));
  }
}

std::vector<NamedArgument> Tracer::arguments(const c10::OperatorHandle& op, const Values& args) {
  std::vector<NamedArgument> inputs =
      to_arguments(op.schema(), args, [this](const at::Tensor& tensor) -> Argument {
        if (!tensor.unsafeGetTensorImpl()->is_wrapped_number()) return aliases_.value_of(tensor);
        // A number that C++ put into a tensor on the way; the interpreter does the same.
        if (tensor.is_floating_point()) return tensor.item<double>();
        if (tensor.is_complex()) return tensor.item<c10::complex<double>>();
        return tensor.scalar_type() == c10::kBool ? Argument(tensor.item<bool>())
                                                  : Argument(tensor.item<int64_t>());
      });
  place_ = recorder_.place(inputs);
  settle_comparisons(inputs);
  return inputs;
}

void Tracer::refuse_unless_allowed(const std::string& target, const char* what) {
  if (!options_.allow.contains(target)) {
    fail(ErrorCode::kUnsupported,
         "{}; its result would be frozen into the graph: CaptureOptions::allow with \"{}\" asks for that",
         what, target);
  }
  notes_.push_back(
      fmt::format("{} in {}: {}; its result at capture became a constant", target, place_, what));
}

// torch's MultiheadAttention compares its arguments to see whether one product will do for all of them. Going
// on as if they differed is right for all data, so the comparison is accepted there, where the next
// parameters that are read are an attention's, and answered with "no". Two handles of one value are always
// equal.
bool Tracer::answer_comparison(const Call& call, torch::jit::Stack& stack) {
  if (call.target != "aten::equal" || options_.allow.contains(call.target)) return false;
  if (aliases_.value_of(call.args[0].toTensor()) == aliases_.value_of(call.args[1].toTensor())) return true;
  comparison_ = place_;
  stack.back() = false;
  return true;
}

void Tracer::settle_comparisons(const std::vector<NamedArgument>& inputs) {
  if (comparison_.empty()) return;
  const std::string* layer = recorder_.layer_read_by(inputs);
  if (!layer && !inputs.empty()) return;
  if (!layer || !recorder_.names().type_of(*layer).starts_with("torch::nn::MultiheadAttention")) {
    place_.clear();  // the call that is handled is not the one to name
    fail(ErrorCode::kUnsupported,
         "aten::equal in {}: gives a number that depends on data; its result would be frozen into the graph: "
         "CaptureOptions::allow with \"aten::equal\" asks for that",
         std::exchange(comparison_, {}));
  }
  comparison_.clear();
}

void Tracer::make_constants(const Values& outputs) {
  for (const c10::IValue& output : outputs)
    for_each_tensor(output, [&](const at::Tensor& tensor) { aliases_.bind_constant(tensor); });
}

template <typename Run>
bool Tracer::draws(const c10::OperatorHandle& op, const Values& args, const Run& run) {
  bool drew = names_generator(args);
  if (drew || !may_draw(op, args)) {
    run();
  } else {
    const RandomState before;
    run();
    drew = !(before == RandomState());
  }
  drew_ = drew_ || drew;
  return drew;
}

void Tracer::record(const Call& call, torch::jit::Stack& stack) {
  const bool generator = names_generator(call.args);
  const std::vector<NamedArgument> inputs =
      generator ? std::vector<NamedArgument>() : arguments(call.op, call.args);
  const bool random = draws(call.op, call.args, [&] { call.run(stack); });
  const Values outputs = torch::jit::last(stack, call.op.schema().returns().size()).vec();
  const bool data = recorder_.depends_on_data(inputs);
  const char* refused = random && (generator || !options_.keep_random) ? "draws random numbers"
                        : data && gives_number_from_data(call.op)      ? "gives a number that depends on data"
                        : data && gives_size_from_data(call.op, call.args)
                            ? "gives a size that depends on data"
                        : leaves_cpu(outputs) ? "moves data to another device"
                                              : nullptr;
  if (refused && answer_comparison(call, stack)) return;
  if (refused) {
    refuse_unless_allowed(call.target, refused);
    return make_constants(outputs);
  }
  // A number that no input can change is the same in every call; C++ has it, and the graph does not need
  // it.
  if (gives_number_from_data(call.op)) return;  // of constants
  record_outputs(call.target, inputs, call.args, outputs);
}

void Tracer::record_outputs(const std::string& target, std::vector<NamedArgument> inputs,
                            const Values& operands, const Values& outputs) {
  std::vector<OutputSpec> specs;
  for (const c10::IValue& output : outputs) specs.push_back(spec_of(output));
  const Node* node = recorder_.append(target, inputs, std::move(specs));
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& operand : operands)
    for_each_tensor(operand, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
  const AliasTracker::MadeBy call{target, inputs, tensors, is_uninitialised(target)};
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].isTensor() && outputs[i].toTensor().defined()) {
      aliases_.bind(outputs[i].toTensor(), node->output(i), call);
    } else if (outputs[i].isTensorList()) {
      const std::vector<at::Tensor> elements = outputs[i].toTensorVector();
      const std::vector<Value*>& values = recorder_.unpack(node->output(i), elements);
      for (size_t k = 0; k < elements.size(); ++k) aliases_.bind(elements[k], values[k], call);
    }
  }
}

Tracer::Values Tracer::run_pure(const c10::OperatorHandle& op, const Values& args) {
  const std::string target = target_of(op);
  torch::jit::Stack stack(args.begin(), args.end());
  const bool generator = names_generator(args);
  const std::vector<NamedArgument> inputs = generator ? std::vector<NamedArgument>() : arguments(op, args);
  const bool random = draws(op, args, [&] { op.callBoxed(stack); });
  if (random && (generator || !options_.keep_random)) {
    refuse_unless_allowed(target, "draws random numbers");
    make_constants(stack);
  } else {
    record_outputs(target, inputs, args, stack);
  }
  return stack;
}

void Tracer::copy_into(const at::Tensor& target, const at::Tensor& source) {
  Value* value = aliases_.value_of(source);
  if (source.scalar_type() != target.scalar_type())
    value = recorder_.derive("aten::to.dtype", {{"self", value}, {"dtype", target.scalar_type()}});
  if (source.sizes() != target.sizes()) {
    Argument::List sizes(target.sizes().begin(), target.sizes().end());
    value = recorder_.derive("aten::expand", {{"self", value}, {"size", std::move(sizes)}});
  }
  aliases_.keep(target);
  target.copy_(source);
  aliases_.write(target, value);
}

void Tracer::record_write(const Call& call, torch::jit::Stack& stack) {
  if (call.target == "aten::set_data") {
    call.run(stack);
    return aliases_.rebind(call.args[0].toTensor(), call.args[1].toTensor());
  }
  if (call.target == "aten::copy_") {
    copy_into(call.args[0].toTensor(), call.args[1].toTensor());
    return call.finish(stack, {call.args[0]});
  }
  if (const auto form = try_pure_form(call.op)) return write_through_pure_form(call, *form, stack);
  write_through_clone(call, stack);
}

void Tracer::write_through_pure_form(const Call& call, const PureForm& form, torch::jit::Stack& stack) {
  Values args;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const bool written = std::find(form.written.begin(), form.written.end(), i) != form.written.end();
    if (!written || !form.drops_written) args.push_back(call.args[i]);
  }
  const Values results = run_pure(form.op, args);
  Values returned;
  for (size_t i = 0; i < form.written.size(); ++i) {
    const at::Tensor& target = call.args[form.written[i]].toTensor();
    const at::Tensor& result = results.at(i).toTensor();
    if (target.sizes() != result.sizes())
      fail(ErrorCode::kUnsupported, "the operand that it writes to would get another size");
    copy_into(target, result);
    returned.push_back(call.args[form.written[i]]);
  }
  returned.resize(call.op.schema().returns().size());
  call.finish(stack, returned);
}

// Custom operators, mostly: the node writes, but only to a copy that nothing else reads.
void Tracer::write_through_clone(const Call& call, torch::jit::Stack& stack) {
  std::vector<NamedArgument> inputs = arguments(call.op, call.args);
  const auto& schema = call.op.schema();
  std::vector<std::pair<at::Tensor, Value*>> written;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (!alias || !alias->isWrite() || call.args[i].isNone()) continue;
    if (!call.args[i].isTensor()) fail(ErrorCode::kUnsupported, "writes to a list of tensors");
    const at::Tensor& target = call.args[i].toTensor();
    if (!target.defined()) continue;
    Value* copy = recorder_.derive("aten::clone", {{"self", aliases_.value_of(target)}});
    for (NamedArgument& input : inputs) {
      if (input.name == schema.arguments()[i].name()) input.value = copy;
    }
    aliases_.keep(target);
    written.emplace_back(target, copy);
  }
  if (draws(call.op, call.args, [&] { call.run(stack); }) && !options_.keep_random)
    refuse_unless_allowed(call.target, "draws random numbers");
  const Values outputs = torch::jit::last(stack, schema.returns().size()).vec();
  std::vector<OutputSpec> specs;
  for (const c10::IValue& output : outputs) specs.push_back(spec_of(output));
  const Node* node = recorder_.append(call.target, inputs, std::move(specs));
  for (const auto& [target, copy] : written) aliases_.write(target, copy);
  const AliasTracker::MadeBy made{call.target, inputs, {}};
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].isTensor() || !outputs[i].toTensor().defined()) continue;
    const bool returned = std::any_of(written.begin(), written.end(), [&](const auto& entry) {
      return entry.first.is_same(outputs[i].toTensor());
    });
    if (!returned) aliases_.bind(outputs[i].toTensor(), node->output(i), made);
  }
}

void Tracer::record_geometry(const Call& call, torch::jit::Stack& stack) {
  const at::Tensor& self = call.args.at(0).toTensor();
  c10::OperatorName name = call.op.operator_name();
  name.name.pop_back();
  const auto view = c10::Dispatcher::singleton().findSchema(name);
  const bool moves = call.target.starts_with("aten::resize") || call.target.starts_with("aten::set_");
  if (!view || moves) {
    const Geometry before = Geometry::of(self);
    const void* storage = self.storage().unsafeGetStorageImpl();
    call.run(stack);
    if (before == Geometry::of(self) && storage == self.storage().unsafeGetStorageImpl()) return;
    fail(ErrorCode::kUnsupported, "gives an existing tensor another memory or size");
  }
  // The view of the tensor as it is; then the tensor itself becomes that view.
  const at::Tensor viewed = run_pure(*view, call.args).at(0).toTensor();
  call.run(stack);
  aliases_.rebind(self, viewed);
}

void Tracer::record_statistics(const Call& call, torch::jit::Stack& stack) {
  static const c10::OperatorHandle pure =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::_native_batch_norm_legit_functional", "");
  // input, weight, bias, running_mean, running_var, training, momentum, eps: in both spellings.
  Values results(call.args.begin(), call.args.begin() + 8);
  if (const Decomposition* known = try_decomposition(target_of(pure))) {
    const ResumeTracing traced;
    (*known)(results);
  } else {
    results = run_pure(pure, results);
  }
  copy_into(call.args[3].toTensor(), results.at(3).toTensor());
  copy_into(call.args[4].toTensor(), results.at(4).toTensor());
  call.finish(stack, Values(results.begin(),
                            results.begin() + static_cast<ptrdiff_t>(call.op.schema().returns().size())));
}

}  // namespace halftone
