// How the components of the library write messages; halftone/base/log.h says where these go.
#pragma once

#include "base/errors.h"
#include "halftone/base/log.h"

namespace halftone {

void log_message(LogLevel level, std::string_view message);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  log_message(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace halftone
