// What templates make of conversations, for the tests that compare them with the package jinja2.
//
//   template_dump CASES OUT
//
// CASES: a JSON array of {"template": text, "variables": {…}, "now": seconds since 1970}. OUT: for each case {"text": …} or {"error": …,
// "code": …}.
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "halftone/cli/text_file.h"
#include "text/template/json_values.h"
#include "text/template/parser.h"
#include "text/template/render.h"

namespace {

using nlohmann::ordered_json;
using namespace halftone;

ordered_json outcome_of(const ordered_json& one) {
  try {
    const auto statements =
        jinja::parse_template(one.at("template").get_ref<const std::string&>(), "template");
    jinja::Rendering rendering("template", one.at("now").get<int64_t>());
    std::vector<std::pair<std::string, jinja::Value>> variables;
    for (const auto& [name, value] : one.at("variables").items())
      variables.emplace_back(name, jinja::json_value(rendering, value));
    return {{"text", jinja::render(rendering, statements, variables)}};
  } catch (const Error& error) {
    return {{"error", error.what()}, {"code", to_string(error.code())}};
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: template_dump CASES OUT\n";
    return 2;
  }
  try {
    ordered_json outcomes = ordered_json::array();
    for (const ordered_json& one : ordered_json::parse(read_text_file(argv[1])))
      outcomes.push_back(outcome_of(one));
    std::ofstream out(argv[2], std::ios::binary);
    out << outcomes.dump();
    return out.good() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
