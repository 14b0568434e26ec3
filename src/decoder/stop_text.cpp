#include "decoder/stop_text.h"

#include <algorithm>

#include "base/errors.h"

namespace halftone {

StopText::StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) {
    if (stop.empty()) fail(ErrorCode::kInvalidArgument, "a stop text is empty");
  }
}

std::string StopText::push(std::string_view text) {
  if (found_) return "";
  held_ += text;
  size_t end = held_.size(), first = std::string::npos;
  for (const std::string& stop : stops_) {
    first = std::min(first, held_.find(stop));
    // The longest end of the text that a stop text begins with stays here.
    for (size_t length = std::min(held_.size(), stop.size() - 1); length > 0; --length) {
      if (!held_.ends_with(std::string_view(stop).substr(0, length))) continue;
      end = std::min(end, held_.size() - length);
      break;
    }
  }
  found_ = first != std::string::npos;
  std::string shown = held_.substr(0, found_ ? first : end);
  held_.erase(0, found_ ? held_.size() : end);
  return shown;
}

std::string StopText::finish() {
  return std::exchange(held_, "");
}

}  // namespace halftone
