#include "mutate.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "checkpoint/container/ht_format.h"

namespace halftone::hostile {
namespace {

/// A place inside the document, by chance: containers are entered more often than replaced.
nlohmann::json& somewhere(nlohmann::json& document, Dice& dice) {
  nlohmann::json* place = &document;
  while (place->is_structured() && !place->empty() && dice.chance(92)) {
    auto it = place->begin();
    std::advance(it, static_cast<long>(dice.pick(place->size())));
    place = &*it;
  }
  return *place;
}

nlohmann::json any_json(Dice& dice) {
  static const std::vector<nlohmann::json> values = {nullptr,
                                                     true,
                                                     false,
                                                     0,
                                                     1,
                                                     -1,
                                                     2,
                                                     7,
                                                     64,
                                                     -5,
                                                     1000000007,
                                                     9223372036854775807,
                                                     1e308,
                                                     0.5,
                                                     "",
                                                     "x",
                                                     "Infinity",
                                                     "weight",
                                                     nlohmann::json::array(),
                                                     nlohmann::json::object(),
                                                     {1, 2},
                                                     {{"as_int", 3}},
                                                     {{"as_none", true}},
                                                     {{"as_ints", {1, -1}}}};
  return dice.one_of(values);
}

void mutate_number(nlohmann::json& place, Dice& dice) {
  static const std::vector<int64_t> others = {
      0, 1, -1, 2, 3, 5, 8, 64, 255, 65536, -7, 2147483648, 4611686018427387904, INT64_MAX, INT64_MIN};
  const int64_t value = place.is_number_integer() ? place.get<int64_t>() : 0;
  place = dice.chance(40) ? wrapping_add(value, dice.chance(50) ? 1 : -1) : dice.one_of(others);
}

void mutate_metadata(HtParts& parts, Dice& dice) {
  auto it = parts.metadata.begin();
  std::advance(it, static_cast<long>(dice.pick(parts.metadata.size())));
  nlohmann::json document = nlohmann::json::parse(it->second, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded() || !document.is_structured()) return;
  mutate_json(document, dice);
  it->second = document.dump();
}

}  // namespace

void mutate_json(nlohmann::json& document, Dice& dice) {
  nlohmann::json& place = somewhere(document, dice);
  if (place.is_number()) return mutate_number(place, dice);
  if (place.is_boolean() && dice.chance(70)) {
    place = !place.get<bool>();
  } else if (place.is_array() && !place.empty() && dice.chance(60)) {
    const size_t at = dice.pick(place.size());
    const nlohmann::json copy = place[at];
    if (dice.chance(50)) {
      place.erase(at);
    } else {
      place.push_back(copy);
    }
  } else if (place.is_object() && !place.empty() && dice.chance(60)) {
    auto it = place.begin();
    std::advance(it, static_cast<long>(dice.pick(place.size())));
    place.erase(it);
  } else {
    place = any_json(dice);
  }
}

void mutate_tensor(HtParts& parts, Dice& dice) {
  if (parts.tensors.empty()) return;
  auto& [name, tensor] = parts.tensors[dice.pick(parts.tensors.size())];
  const bool packed = name.starts_with(std::string(ht::kReserved) + "packed");
  if (packed || dice.chance(35)) {
    at::Tensor bytes = tensor.clone().view({-1});
    if (bytes.numel() == 0) return;
    bytes = bytes.view(at::kByte);
    const int64_t reach = packed && dice.chance(80) ? std::min<int64_t>(bytes.numel(), 128) : bytes.numel();
    for (size_t i = 0, count = 1 + dice.pick(3); i < count; ++i) {
      uint8_t& byte = bytes.data_ptr<uint8_t>()[dice.pick(static_cast<size_t>(reach))];
      byte = static_cast<uint8_t>(dice.chance(50) ? dice.next() : byte ^ (1u << dice.pick(8)));
    }
    if (packed && dice.chance(25))
      bytes = dice.chance(50)
                  ? bytes.narrow(0, 0,
                                 bytes.numel() - 1 -
                                     static_cast<int64_t>(dice.pick(static_cast<size_t>(bytes.numel()))))
                  : at::cat({bytes, bytes}).contiguous();
    tensor = packed ? bytes.contiguous() : bytes.view(tensor.scalar_type()).view(tensor.sizes());
    return;
  }
  switch (dice.pick(4)) {
    case 0:
      tensor = tensor
                   .to(dice.one_of<at::ScalarType>({at::kFloat, at::kDouble, at::kLong, at::kInt, at::kByte,
                                                    at::kChar, at::kBool, at::kBFloat16, at::kHalf}))
                   .contiguous();
      break;
    case 1:
      if (tensor.dim() > 0 && tensor.size(-1) > 0)
        tensor = tensor.narrow(-1, 0, static_cast<int64_t>(dice.pick(static_cast<size_t>(tensor.size(-1)))))
                     .contiguous();
      break;
    case 2:
      if (tensor.dim() > 0)
        tensor =
            at::cat({tensor, tensor}, static_cast<int64_t>(dice.pick(static_cast<size_t>(tensor.dim()))));
      break;
    default:
      tensor = dice.chance(50) ? tensor.unsqueeze(0) : tensor.flatten();
  }
}

void mutate_ht(HtParts& parts, Dice& dice, const std::vector<std::string>& targets) {
  std::string& graph = parts.metadata[ht::kGraphKey];
  const size_t kind = dice.pick(100);
  if (kind < 55) {
    graph = mutate_graph(graph, dice, targets);
  } else if (kind < 70) {
    graph = insert_call(graph, dice);
  } else if (kind < 90) {
    mutate_tensor(parts, dice);
    if (dice.chance(30)) graph = mutate_graph(graph, dice, targets);
  } else {
    mutate_metadata(parts, dice);
  }
}

void mutate_pt2(Pt2Parts& parts, Dice& dice, const std::vector<std::string>& targets) {
  for (auto& [name, bytes] : parts.members) {
    if (!name.ends_with("models/model.json")) continue;
    nlohmann::json document = nlohmann::json::parse(bytes);
    nlohmann::json& nodes = document["graph_module"]["graph"]["nodes"];
    if (dice.chance(20) && nodes.is_array() && !nodes.empty()) {
      const std::string& target = dice.one_of(targets);
      std::string python = "torch.ops." + target;
      if (const size_t colons = python.find("::"); colons != std::string::npos)
        python.replace(colons, 2, ".");
      if (target.find('.') == std::string::npos) python += ".default";
      nodes[dice.pick(nodes.size())]["target"] = python;
    }
    do {
      mutate_json(document["graph_module"][dice.chance(90) ? "graph" : "signature"], dice);
    } while (dice.chance(30));
    bytes = document.dump();
  }
}

}  // namespace halftone::hostile
