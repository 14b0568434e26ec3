// Finding the texts that end an answer while it comes piece by piece.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace halftone {

/// Passes text through as soon as it cannot be the beginning of a stop text any more.
class StopText {
 public:
  /// kInvalidArgument if one of them is empty.
  explicit StopText(std::vector<std::string> stops);

  /// What may be shown now. After a stop text was found, nothing more comes.
  std::string push(std::string_view text);
  std::string finish();  ///< what was held back
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace halftone
