#include "tally.h"

#include <fmt/format.h>

#include <cctype>
#include <fstream>

#include "archive/bytes/atomic_file.h"
#include "halftone/base/error.h"

namespace halftone::hostile {
namespace {

using Outcome = TrialResult::Outcome;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_lower(char c) {  // of a namespace such as aten
  return (c >= 'a' && c <= 'z') || c == '_' || is_digit(c);
}
bool is_name(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z') || c == '.';
}

/// Where the name, number or list ends that begins at `at`; `at` where none does.
size_t end_of_name(const std::string& text, size_t at) {
  const auto run = [&](size_t from, bool (*wanted)(char)) {
    while (from < text.size() && wanted(text[from])) ++from;
    return from;
  };
  const char c = text[at];
  if (c == '"' || c == '[') {
    const size_t close = text.find(c == '"' ? '"' : ']', at + 1);
    return close == std::string::npos ? at : close + 1;
  }
  if (c == '%') {
    const size_t end = run(at + 1, is_name);
    return end == at + 1 ? at : end;
  }
  if (is_digit(c)) return run(at, is_digit);
  if (c == '-') {
    const size_t end = run(at + 1, is_digit);
    return end == at + 1 ? at : end;
  }
  if (!is_lower(c)) return at;
  const size_t colons = run(at, is_lower);
  if (text.compare(colons, 2, "::") != 0) return at;
  const size_t end = run(colons + 2, is_name);
  return end == colons + 2 ? at : end;
}

constexpr std::pair<Outcome, const char*> kOutcomes[] = {
    {Outcome::kRefused, "refused"}, {Outcome::kErrors, "errors"},     {Outcome::kCautious, "cautious"},
    {Outcome::kSame, "same"},       {Outcome::kForgiven, "forgiven"}, {Outcome::kWrong, "wrong"}};

const std::string kForgiven = "forgiven: ";  // and the reason

void read_count(Tally& tally, const std::string& name, const std::string& value) {
  if (name.starts_with(kForgiven)) tally.forgiven[name.substr(kForgiven.size())] = std::stoull(value);
  if (name == "first") tally.first = std::stoull(value);
  if (name == "next") tally.next = std::stoull(value);
  if (name == "trials") tally.trials = std::stoull(value);
  if (name == "seconds") tally.seconds = std::stod(value);
  for (const auto& [outcome, word] : kOutcomes) {
    if (name == word) tally.outcomes[outcome] = std::stoull(value);
  }
}

}  // namespace

// By hand: std::regex is slow, more so under sanitizers, and one parent does this for all children.
std::string kind_of(const std::string& message) {
  const std::string text = message.substr(0, 400);
  std::string kind;
  for (size_t i = 0; i < text.size();) {
    const size_t end = end_of_name(text, i);
    kind += end == i ? text[i] : '_';
    i = end == i ? i + 1 : end;
  }
  return kind.substr(0, 160);
}

void Tally::add(uint64_t item, const TrialResult& result) {
  ++trials;
  ++outcomes[result.outcome];
  steps.insert(result.steps.begin(), result.steps.end());
  layouts.insert(result.layouts.begin(), result.layouts.end());
  if (result.outcome == Outcome::kWrong) failures.emplace_back(item, result.detail);
  if (result.outcome == Outcome::kRefused || result.outcome == Outcome::kErrors ||
      result.outcome == Outcome::kCautious)
    refusals.insert(kind_of(result.detail));
  if (result.outcome == Outcome::kForgiven) ++forgiven[result.detail];
}

void Tally::add_crash(uint64_t item, const std::string& why) {
  ++trials;
  failures.emplace_back(item, why);
}

void Tally::merge(const Tally& other) {
  next = other.next;
  trials += other.trials;
  seconds += other.seconds;
  for (const auto& [outcome, count] : other.outcomes) outcomes[outcome] += count;
  for (const auto& [reason, count] : other.forgiven) forgiven[reason] += count;
  refusals.insert(other.refusals.begin(), other.refusals.end());
  steps.insert(other.steps.begin(), other.steps.end());
  layouts.insert(other.layouts.begin(), other.layouts.end());
  failures.insert(failures.end(), other.failures.begin(), other.failures.end());
}

void write_tally(const Tally& tally, const std::string& path) {
  std::string text = fmt::format("first\t{}\nnext\t{}\ntrials\t{}\nseconds\t{:.1f}\n", tally.first,
                                 tally.next, tally.trials, tally.seconds);
  for (const auto& [outcome, word] : kOutcomes) {
    const auto found = tally.outcomes.find(outcome);
    if (found != tally.outcomes.end()) text += fmt::format("{}\t{}\n", word, found->second);
  }
  for (const auto& [reason, count] : tally.forgiven)
    text += fmt::format("{}{}\t{}\n", kForgiven, reason, count);
  for (const auto& [item, why] : tally.failures) text += fmt::format("failure\t{}\t{}\n", item, why);
  for (const auto& [kind, items] :
       {std::pair("message", &tally.refusals), {"step", &tally.steps}, {"layout", &tally.layouts}}) {
    for (const std::string& item : *items) text += fmt::format("{}\t{}\n", kind, item);
  }
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

Tally read_tally(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::kNotFound, path + ": cannot be read");
  Tally tally;
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) throw Error(ErrorCode::kCorruptFile, path + ": no tally");
    const std::string head = line.substr(0, tab), rest = line.substr(tab + 1);
    if (head == "message") {
      tally.refusals.insert(rest);
    } else if (head == "step") {
      tally.steps.insert(rest);
    } else if (head == "layout") {
      tally.layouts.insert(rest);
    } else if (head == "failure") {
      const size_t second = rest.find('\t');
      tally.failures.emplace_back(std::stoull(rest),
                                  second == std::string::npos ? "" : rest.substr(second + 1));
    } else {
      read_count(tally, head, rest);
    }
  }
  return tally;
}

}  // namespace halftone::hostile
