#include "tune/trial.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "base/errors.h"
#include "base/json.h"
#include "graph/aten/torch_errors.h"
#include "halftone/checkpoint/checkpoint.h"
#include "tune/report/report_json.h"

namespace halftone {
namespace {

constexpr size_t kArguments = 4;

/// As mkdtemp() does it, but an interrupt knows the name before the folder is there.
std::filesystem::path make_folder(std::vector<Unfinished>& unfinished) {
  constexpr int kAttempts = 100;
  std::random_device random;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                         fmt::format("halftone-trial-{:08x}{:08x}", random(), random());
    unfinished.emplace_back(folder.string());
    if (::mkdir(folder.c_str(), 0700) == 0) return folder;
    unfinished.pop_back();
    if (errno != EEXIST) break;
  }
  fail(ErrorCode::kIo, "a temporary folder could not be made: {}", strerror(errno));
}

/// The last line that is not empty: libraries may print before it.
std::string last_line(std::string text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  const size_t start = text.rfind('\n');
  return start == std::string::npos ? text : text.substr(start + 1);
}

int thread_count(const std::string& text) {
  size_t used = 0;
  const int threads = std::stoi(text, &used);
  if (used != text.size() || threads < 1) fail(ErrorCode::kInvalidArgument, "trial: \"{}\" threads", text);
  return threads;
}

void try_once(const std::vector<std::string>& args) {
  if (args.size() != kArguments) {
    fail(ErrorCode::kInvalidArgument,
         "trial: needs a model file, a backend type, its config and a number of threads");
  }
  const auto module = load_checkpoint(args[0], {.map = true, .verify = false});
  at::set_num_threads(thread_count(args[3]));
  const auto recipe = make_backend_recipe(args[1], args[2]);
  const ReadyModel ready = recipe->prepare(module, {sample_from_flat(*module, module->sample_inputs)}, "");
  Session(ready.module, ready.executor).run(module->sample_inputs);
}

}  // namespace

std::string run_trial(const std::vector<std::string>& args) {
  nlohmann::ordered_json answer = {{"ok", false}};
  try {
    try_once(args);
    answer["ok"] = true;
  } catch (const std::exception& error) {
    answer["error"] = error_text(error);
  } catch (...) {
    answer["error"] = "something that is no exception was thrown";
  }
  return dump_json(answer, -1);
}

TrialRunner::TrialRunner(const TuneIsolation& isolation, const GraphModule& module, const Sample& sample)
    : isolation_(isolation) {
  if (isolation.command.empty()) fail(ErrorCode::kInvalidArgument, "TuneIsolation::command is empty");
  folder_ = make_folder(unfinished_);
  unfinished_.emplace_back((folder_ / "model.ht").string());
  const auto copy = module.clone();
  copy->sample_inputs = flat_inputs(module, sample);
  try {
    save_checkpoint(*copy, (folder_ / "model.ht").string());
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
    throw;
  }
}

TrialRunner::~TrialRunner() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

TrialRunner::Outcome TrialRunner::run(const BackendRecipe& recipe) const {
  std::vector<std::string> arguments = isolation_.command;
  arguments.insert(arguments.end(), {(folder_ / "model.ht").string(), recipe.type(), recipe.config(),
                                     std::to_string(at::get_num_threads())});
  const ChildOutcome outcome = run_child(arguments, isolation_.seconds);
  if (!outcome.failure.empty())
    return {"in a child process " + outcome.failure, outcome.end == ChildEnd::kSignal};
  try {
    const nlohmann::json parsed = parse_json(last_line(outcome.output), "trial");
    const JsonCursor answer(parsed, "trial");
    if (answer.at("ok").get_bool()) return {};
    return {"in a child process: " + answer.at("error").get_string()};
  } catch (const Error& error) {
    return {fmt::format("the child process gave no answer: {}", error.what())};
  }
}

}  // namespace halftone
