// The findings of what was tried against 0.2.0 (tools/halftone/hostile_findings.py writes the files), through
// every function that loads a model: refused with file and place, whatever backend the file asks for.
#include <ATen/ATen.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "graph/test_support.h"
#include "halftone/backend/backend.h"
#include "halftone/backend/recipes.h"
#include "halftone/capture/capture.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/compile/compile.h"
#include "halftone/graph/limits.h"

namespace halftone {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

const std::string kFolder = FINDINGS_FOLDER;

struct Finding {
  std::string finding;  ///< empty: a sound file
  std::string path;
  std::string backend;  ///< that the file asks for; empty: none
  std::vector<std::string> words;

  bool is_checkpoint() const { return path.ends_with(".ht"); }
};

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Finding> listed_findings() {
  std::vector<Finding> list;
  for (const auto& entry : nlohmann::json::parse(content_of(kFolder + "/findings.json"))) {
    Finding finding{entry.at("finding"), kFolder + "/" + entry.at("file").get<std::string>(),
                    entry.at("backend"), entry.at("words")};
    finding.words.push_back(entry.at("file"));
    list.push_back(std::move(finding));
  }
  return list;
}

/// Those that are refused before they run.
std::vector<Finding> refused_findings() {
  std::vector<Finding> list = listed_findings();
  std::erase_if(
      list, [](const Finding& each) { return each.finding.empty() || each.finding == "an endless loop"; });
  return list;
}

/// Whatever the code of the error, it is a halftone::Error that names all of `words`.
template <typename Call>
void expect_refusal(const std::vector<std::string>& words, const char* function, Call&& call) {
  SCOPED_TRACE(function);
  try {
    call();
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(to_string(error.code()),
                AnyOf(to_string(ErrorCode::kUnsupported), to_string(ErrorCode::kCorruptFile)));
    for (const std::string& word : words) EXPECT_THAT(error.what(), HasSubstr(word));
  }
}

TEST(HostileFindings, AreAllHere) {
  std::set<std::string> names;
  std::map<std::string, size_t> backends;
  for (const Finding& each : refused_findings()) {
    names.insert(each.finding);
    ++backends[each.backend];
  }
  EXPECT_EQ(names.size(), 16U);
  EXPECT_EQ(backends[""], 29U);  // 13 as .ht and .pt2, 3 as .ht
  EXPECT_EQ(backends["EagerBackend"], 15U);
  EXPECT_EQ(backends["HalftoneBackend"], 15U);
}

TEST(HostileFindings, AreRefusedByEveryFunctionThatLoads) {
  for (const Finding& each : refused_findings()) {
    SCOPED_TRACE(each.finding + " in " + each.path);
    if (!each.is_checkpoint()) {
      for (const bool map : {false, true})
        expect_refusal(each.words, "load_pt2", [&] { load_pt2(each.path, {.map = map}); });
      continue;
    }
    for (const bool map : {false, true}) {
      expect_refusal(each.words, "load_checkpoint", [&] { load_checkpoint(each.path, {.map = map}); });
      expect_refusal(each.words, "load", [&] { load(each.path, {.map = map}); });
      // Checksums are the attacker's too: what is refused does not depend on them.
      expect_refusal(each.words, "load without checksums",
                     [&] { load(each.path, {.map = map, .verify = false}); });
    }
    std::string findings;
    for (const std::string& found : verify_checkpoint(each.path).findings) findings += found + "\n";
    for (size_t i = 0; i + 1 < each.words.size(); ++i) EXPECT_THAT(findings, HasSubstr(each.words[i]));
  }
  EXPECT_EQ(content_of(kFolder + "/secret.bin").substr(0, 8), "keep me ");
}

class FewSteps {
 public:
  FewSteps() { set_max_steps(1000); }
  ~FewSteps() { set_max_steps(kDefaultMaxSteps); }
};

TEST(HostileFindings, AnEndlessLoopEndsOnEveryBackend) {
  const FewSteps limit;
  size_t files = 0;
  for (const Finding& each : listed_findings()) {
    if (each.finding != "an endless loop") continue;
    SCOPED_TRACE(each.path);
    ++files;
    const auto module = load_checkpoint(each.path);
    const at::Tensor x = at::ones({3, 64});
    const auto call = [&](const std::function<void()>& run) {
      const std::string message = message_of(ErrorCode::kUnsupported, run);
      EXPECT_THAT(message, HasSubstr("while_loop"));
      EXPECT_THAT(message, HasSubstr("1000"));
    };
    call([&] { Session(module).run({x}); });
    call([&] { Session(module, compile(module)).run({x}); });
    Backend backend = load(each.path);
    backend.deploy();
    EXPECT_EQ(backend.name(), each.backend.empty() ? "HalftoneBackend" : each.backend);
    call([&] { backend.infer({x}); });
  }
  EXPECT_EQ(files, 3U);
}

/// Or everything could be refused.
TEST(HostileFindings, SoundFilesLoadAndRunOnBothBackends) {
  size_t files = 0;
  for (const Finding& each : listed_findings()) {
    if (!each.finding.empty()) continue;
    SCOPED_TRACE(each.path);
    ++files;
    const auto module = each.is_checkpoint() ? load_checkpoint(each.path) : load_pt2(each.path);
    const at::Tensor expected = Session(module).run(module->sample_inputs).at(0).toTensor();
    const auto compiled = Session(module, compile(module)).run(module->sample_inputs);
    EXPECT_TRUE(compiled.at(0).toTensor().allclose(expected, 1e-4, 1e-5));
    if (!each.is_checkpoint()) continue;
    EXPECT_THAT(verify_checkpoint(each.path).findings, ::testing::IsEmpty());
    Backend backend = load(each.path);
    backend.deploy();
    EXPECT_EQ(backend.name(), each.backend.empty() ? "HalftoneBackend" : each.backend);
    EXPECT_TRUE(backend.infer(module->sample_inputs).toTensor().allclose(expected, 1e-4, 1e-5));
  }
  EXPECT_EQ(files, 8U);  // two .ht, each as it is and for two backends; two .pt2
}

}  // namespace
}  // namespace halftone
