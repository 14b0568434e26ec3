#include "graph/aten/torch_errors.h"

#include <c10/util/Exception.h>

#include <new>

#include "base/errors.h"
#include "halftone/cli/message.h"

namespace halftone {

std::string error_text(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
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
    throw Error(ErrorCode::kInternal, bounded_message(path + ": " + error.what()));
  }
}

}  // namespace halftone
