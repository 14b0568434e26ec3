// What the formats say of themselves must be true of the operators that are registered.
#include "quant/weight/linear_format.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <set>

namespace halftone {
namespace {

/// Argument names of an operator that must be registered.
std::set<std::string> arguments_of(std::string_view target) {
  std::set<std::string> names;
  const auto op = c10::Dispatcher::singleton().findSchema({std::string(target), ""});
  EXPECT_TRUE(op.has_value()) << target;
  if (!op) return names;
  for (const c10::Argument& argument : op->schema().arguments()) names.insert(argument.name());
  return names;
}

TEST(LinearFormats, NameOperatorsAndArgumentsThatExist) {
  std::set<std::string_view> targets, names;
  for (const LinearFormat* format : linear_formats()) {
    const std::set<std::string> arguments = arguments_of(format->target);
    for (const auto* list : {&format->parts, &format->attributes})
      for (const std::string_view name : *list)
        EXPECT_TRUE(arguments.contains(std::string(name))) << format->target << " " << name;
    for (const std::string_view target : {format->target, format->embedding, format->convolution}) {
      if (target.empty()) continue;
      arguments_of(target);
      EXPECT_TRUE(targets.insert(target).second) << target;
    }
    EXPECT_NE(format->config, nullptr) << format->target;
    if (format->name.empty()) continue;
    EXPECT_TRUE(names.insert(format->name).second) << format->name;
  }
}

TEST(LinearFormats, WithAFusedFormHaveAKernelOrTheirOwnStep) {
  EXPECT_NE(fp32_linear_format().ready, nullptr);
  for (const LinearFormat* format : linear_formats()) {
    if (format->name.empty()) continue;
    EXPECT_NE(format->ready != nullptr, format->takes_quantized_rows) << format->name;
    EXPECT_LE(format->required_parts, format->parts.size()) << format->name;
  }
}

}  // namespace
}  // namespace halftone
