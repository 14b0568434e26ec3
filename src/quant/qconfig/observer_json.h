// Observers and qconfigs as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "halftone/ptq/qconfig.h"

namespace halftone::qconfig {

using Json = nlohmann::ordered_json;

Json observer_json(const ObserverConfig& config);
ObserverConfig read_observer(const JsonCursor& place);
/// null if there is none.
Json qconfig_json(const QConfigMapping::Value& value);
/// Also the name of one: "default_dynamic".
QConfigMapping::Value read_qconfig(const JsonCursor& place);

}  // namespace halftone::qconfig
