#include "graph/run/input_check.h"

#include <ATen/core/Tensor.h>

#include "base/errors.h"
#include "graph/aten/dtype_text.h"
#include "graph/operators/operands.h"
#include "halftone/cli/message.h"
#include "halftone/graph/check_inputs.h"

namespace halftone {

/// One size that has to match: dimension `dimension` of input `input` (-1: the input is a number itself).
struct InputCheck::Pending {
  const std::string* input;
  int64_t dimension;
  const SymExpr* expression;
  int64_t found;

  std::string place() const {
    return dimension < 0 ? fmt::format("input \"{}\"", *input)
                         : fmt::format("input \"{}\", dimension {}", *input, dimension);
  }
};

InputCheck::InputCheck(const GraphModule& module) : ranges_(module.ranges), guards_(module.guards) {
  for (const GraphInput& input : module.graph().inputs()) {
    if (input.kind != InputKind::kUser) continue;
    Expected expected{input.target, input.value->type(), input.value->meta(), input.value->expression(),
                      std::nullopt};
    if (input.fixed) expected.fixed = constant_to_ivalue(*input.fixed, nullptr);
    expected_.push_back(std::move(expected));
  }
}

SymbolBindings InputCheck::check(const std::vector<c10::IValue>& inputs) const {
  if (inputs.size() != expected_.size()) {
    fail(ErrorCode::kGuard, "the model takes {}, not {}", counted(expected_.size(), "input"), inputs.size());
  }
  SymbolBindings bindings;
  std::vector<Pending> pending;
  for (size_t i = 0; i < inputs.size(); ++i) check_one(expected_[i], inputs[i], bindings, pending);
  settle(std::move(pending), bindings);
  for (const ShapeGuard& guard : guards_) {
    std::set<std::string> names;
    guard.condition.collect_symbols(names);
    bool known = true;
    for (const std::string& name : names) known = known && bindings.contains(name);
    if (known && guard.condition.evaluate(bindings) == 0) {
      fail(ErrorCode::kGuard, "the sizes of the inputs break a condition of the export: {}", guard.text);
    }
  }
  return bindings;
}

void InputCheck::check_one(const Expected& expected, const c10::IValue& input, SymbolBindings& bindings,
                           std::vector<Pending>& pending) const {
  if (expected.fixed) {
    const bool both_none = expected.fixed->isNone() && input.isNone();
    if (!both_none &&
        (input.isTensor() || expected.fixed->isNone() || input.isNone() || !(*expected.fixed == input))) {
      std::ostringstream wanted;
      wanted << *expected.fixed;
      fail(ErrorCode::kGuard,
           "input \"{}\" was exported as the constant {}; another value needs another export", expected.name,
           wanted.str());
    }
    return;
  }
  if (expected.type == ValueType::kInt && expected.expression) {
    if (!input.isInt())
      fail(ErrorCode::kGuard, "input \"{}\": expected an integer, found {}", expected.name, input.tagKind());
    check_size({&expected.name, -1, &*expected.expression, input.toInt()}, bindings, pending);
  }
  if (expected.type != ValueType::kTensor) return;
  if (!input.isTensor() || !input.toTensor().defined()) {
    fail(ErrorCode::kGuard, "input \"{}\": expected a tensor, found {}", expected.name,
         input.isTensor() ? "an undefined tensor" : input.tagKind());
  }
  if (!expected.meta) return;
  const at::Tensor& tensor = input.toTensor();
  if (tensor.scalar_type() != expected.meta->dtype) {
    fail(ErrorCode::kGuard, "input \"{}\": expected dtype {}, found {}", expected.name,
         dtype_text(expected.meta->dtype), dtype_text(tensor.scalar_type()));
  }
  const auto& sizes = expected.meta->sizes;
  if (std::cmp_not_equal(tensor.dim(), sizes.size())) {
    fail(ErrorCode::kGuard, "input \"{}\": expected {} dimensions, found {}", expected.name, sizes.size(),
         tensor.dim());
  }
  for (size_t d = 0; d < sizes.size(); ++d) {
    const auto dimension = static_cast<int64_t>(d);
    check_size({&expected.name, dimension, &sizes[d], tensor.size(dimension)}, bindings, pending);
  }
}

void InputCheck::bind(const std::string& symbol, int64_t value, const Pending& where,
                      SymbolBindings& bindings) const {
  if (const auto range = ranges_.find(symbol); range != ranges_.end()) {
    // The exporter writes a minimum of 2 for every dynamic size, because it looks at 0 and 1 apart; torch
    // itself does not refuse those when the program runs, and a batch of 1 is what most callers have.
    const int64_t min = range->second.min == 2 ? 0 : range->second.min;
    if (value < min || value > range->second.max) {
      const std::string upper =
          range->second.max == SymbolRange{}.max ? "…" : std::to_string(range->second.max);
      fail(ErrorCode::kGuard, "{}: {} is outside the exported range {} to {} of {}", where.place(),
           where.found, min, upper, symbol);
    }
  }
  bindings[symbol] = value;
}

void InputCheck::check_size(const Pending& size, SymbolBindings& bindings,
                            std::vector<Pending>& pending) const {
  const SymExpr& expression = *size.expression;
  if (expression.is_constant()) {
    if (expression.constant() != size.found) {
      fail(ErrorCode::kGuard, "{}: expected {}, found {}", size.place(), expression.constant(), size.found);
    }
  } else if (!expression.is_symbol()) {
    pending.push_back(size);
  } else if (const auto bound = bindings.find(expression.symbol()); bound == bindings.end()) {
    bind(expression.symbol(), size.found, size, bindings);
  } else if (bound->second != size.found) {
    fail(ErrorCode::kGuard, "{}: expected {} (as {} is elsewhere in the inputs), found {}", size.place(),
         bound->second, expression.symbol(), size.found);
  }
}

// Sizes such as 2*s0 + 1 wait until the plain symbols are bound; what is then still free is solved for.
void InputCheck::settle(std::vector<Pending> pending, SymbolBindings& bindings) const {
  for (const Pending& size : pending) {
    std::set<std::string> names;
    size.expression->collect_symbols(names);
    bool free = false;
    for (const std::string& name : names) free = free || !bindings.contains(name);
    if (free) {
      const auto solution = try_solve(*size.expression, size.found, bindings);
      if (!solution) {
        fail(ErrorCode::kGuard, "{}: {} is not of the form {}", size.place(), size.found,
             size.expression->to_string());
      }
      bind(solution->first, solution->second, size, bindings);
    } else if (const int64_t wanted = size.expression->evaluate(bindings); wanted != size.found) {
      fail(ErrorCode::kGuard, "{}: expected {} ({}), found {}", size.place(), wanted,
           size.expression->to_string(), size.found);
    }
  }
}

void check_inputs(const GraphModule& module, const std::vector<c10::IValue>& inputs) {
  InputCheck(module).check(inputs);
}

}  // namespace halftone
