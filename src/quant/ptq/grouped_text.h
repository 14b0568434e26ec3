// Tables of what happened where, for reports: how many, what, and the first places.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace halftone::ptq {

/// What → the layers or nodes where.
using Places = std::map<std::string, std::vector<std::string>>;

/// A line for each entry, at most 100 columns wide, without titles. Empty for none.
std::string places_table(const Places& places);

/// The layer, or "%node" if there is none.
std::string place_name(const std::string& layer, const std::string& node);

}  // namespace halftone::ptq
