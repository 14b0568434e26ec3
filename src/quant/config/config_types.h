// The registry of config types: which fields each has, their defaults, and what it refuses.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace halftone {

/// `default_fields`: a JSON object; a config's value must be of the same JSON kind as the default. `check`
/// gets all fields as canonical JSON and throws if a value is not allowed. kInvalidArgument if the type
/// is there already or the defaults are no object. Thread-safe.
void register_fields(const std::string& type, std::string_view default_fields,
                     std::function<void(std::string_view fields_json)> check);

/// All fields in canonical form (keys sorted, no spaces): the given ones, and the defaults of the others,
/// but without fields that came later and have their default (see BuiltinFields).
/// kInvalidArgument, naming type and field, for what the type does not take.
std::string complete_fields(const std::string& type, std::string_view given_json);

/// The type's default fields, canonical. kInvalidArgument, with the nearest name, for an unknown type.
std::string default_fields(const std::string& type);

/// Names of all types, sorted.
std::vector<std::string> config_types();

}  // namespace halftone
