// An attacker's changes to a file before it is sealed again: the graph's text, the tensors, JSON records.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "dice.h"
#include "seeds.h"

namespace halftone::hostile {

/// A graph's text with one or a few changes: other numbers, operands, operators, dtypes, constants,
/// arguments, statements. Mostly still a graph that parses.
std::string mutate_graph(const std::string& text, Dice& dice, const std::vector<std::string>& targets);

/// Adds a statement that calls any operator which the dispatcher knows, with arguments of the types that its
/// schema wants and values out of the usual range.
std::string insert_call(const std::string& text, Dice& dice);

/// One change somewhere inside: another number, text, type or length.
void mutate_json(nlohmann::json& document, Dice& dice);

/// Another dtype, size or content of one stored tensor; of packed blocks mostly the header.
void mutate_tensor(HtParts& parts, Dice& dice);

/// Any of the above.
void mutate_ht(HtParts& parts, Dice& dice, const std::vector<std::string>& targets);
void mutate_pt2(Pt2Parts& parts, Dice& dice, const std::vector<std::string>& targets);

}  // namespace halftone::hostile
