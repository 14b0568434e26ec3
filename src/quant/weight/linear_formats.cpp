#include <array>

#include "quant/weight/linear_format.h"

namespace halftone {

std::span<const LinearFormat* const> linear_formats() {
  static const std::array<const LinearFormat*, 7> formats = {&int8_weight_only_linear_format(),
                                                             &int8_linear_format(),
                                                             &int4_linear_format(),
                                                             &fp8_linear_format(),
                                                             &bf16_linear_format(),
                                                             &intx_linear_format(),
                                                             &custom_linear_format()};
  return formats;
}

bool flag_of(const Node& node, std::string_view name) {
  const Argument* given = node.try_input(name);
  const bool* value = given != nullptr ? given->get_if<bool>() : nullptr;
  return value != nullptr && *value;
}

int64_t number_of(const Node& node, std::string_view name, int64_t otherwise) {
  const Argument* given = node.try_input(name);
  return given != nullptr ? given->as_int().value_or(otherwise) : otherwise;
}

bool is_given(const Node& node, std::string_view name) {
  const Argument* argument = node.try_input(name);
  return argument != nullptr && !argument->is_none();
}

}  // namespace halftone
