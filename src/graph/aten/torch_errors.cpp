#include "graph/aten/torch_errors.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <new>
#include <string_view>

#include "base/errors.h"
#include "halftone/cli/message.h"

namespace halftone {

namespace {

/// Some operators (unflatten) put what() of an error, backtrace and all, into a message of their own.
std::string without_backtraces(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const bool backtrace = line.starts_with("Exception raised from ") || line.starts_with("frame #");
    if (!backtrace) result.append(line).push_back('\n');
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  while (result.ends_with('\n')) result.pop_back();
  return result;
}

}  // namespace

std::string error_text(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return without_backtraces(torch_error != nullptr ? torch_error->what_without_backtrace() : error.what());
}

std::string place_of_node(const Node& node) {
  const std::string output = node.outputs().empty() ? "" : fmt::format(" (%{})", node.output()->name());
  return fmt::format("{}{} in layer \"{}\"", node.target(), output, node.source().layer);
}

void rethrow_at(const std::string& place, ErrorCode otherwise) {
  try {
    throw;
  } catch (const Error& error) {
    throw error.with_context(place);
  } catch (const std::exception& error) {
    fail(otherwise, "{}: {}", place, error_text(error));
  }
}

void rethrow_about_file(const std::string& path, OwnErrors own) {
  try {
    throw;
  } catch (const Error& error) {
    const std::string message = error.what();
    if (own == OwnErrors::kAsTheyAre) throw Error(error.code(), bounded_message(message));
    const ErrorCode code =
        error.code() == ErrorCode::kInvalidArgument ? ErrorCode::kCorruptFile : error.code();
    throw Error(code, bounded_message(message.starts_with(path) ? message : path + ": " + message));
  } catch (const c10::Error& error) {
    throw Error(ErrorCode::kCorruptFile, bounded_message(path + ": " + error_text(error)));
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::kCorruptFile, "{}: not enough memory for what the file describes", path);
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kInternal, bounded_message(path + ": " + error_text(error)));
  }
}

}  // namespace halftone
