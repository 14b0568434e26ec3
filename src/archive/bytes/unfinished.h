// Files and folders that must not outlive an interrupted process (halftone/cli/interrupt.h).
#pragma once

#include <string>

namespace halftone {

/// While it lives, an interrupt removes the path: a file, or a folder whose files are Unfinished too. Made
/// before the file or folder is, so that no moment is left out.
class Unfinished {
 public:
  explicit Unfinished(const std::string& path);
  ~Unfinished();
  Unfinished(Unfinished&& other) noexcept;
  Unfinished& operator=(Unfinished&& other) noexcept;
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

 private:
  int slot_ = -1;  ///< -1: none; if all are taken the path is not removed
};

/// A file got its name: an interrupt no longer says that nothing was written.
void note_finished_file();

}  // namespace halftone
