// open_model(): the content of a file decides how it is read, not its name.
#include "halftone/capture/open_model.h"

#include "checkpoint/test_support.h"
#include "halftone/capture/capture.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

constexpr const char* kExported = CAPTURE_TESTDATA "/small.pt2";

class OpenModel : public CheckpointTest {
 protected:
  void expect_refused(const std::string& file, ErrorCode code, const std::string& words) const {
    try {
      open_model(file);
      ADD_FAILURE() << file << " was opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(std::string(error.what()), HasSubstr(file));
      EXPECT_THAT(std::string(error.what()), HasSubstr(words));
    }
  }
};

TEST_F(OpenModel, ReadsBothKindsUnderAnyName) {
  const auto module = small_model();
  for (const char* name : {"model.ht", "model.pt2", "model", "model.txt"}) {
    save_checkpoint(*module, path(name));
    EXPECT_EQ(model_file_kind(path(name)), ModelFileKind::kHt);
    for (const bool map : {true, false}) {
      const auto opened = open_model(path(name), {.map = map});
      EXPECT_EQ(print_graph(opened->graph()), print_graph(module->graph()));
      EXPECT_EQ(opened->name, path(name));
    }
  }
  const std::string exported = print_graph(load_pt2(kExported)->graph());
  for (const char* name : {"exported.pt2", "exported.ht", "exported"}) {
    std::filesystem::copy_file(kExported, path(name));
    EXPECT_EQ(model_file_kind(path(name)), ModelFileKind::kPt2);
    for (const bool map : {true, false})
      EXPECT_EQ(print_graph(open_model(path(name), {.map = map})->graph()), exported);
  }
}

TEST_F(OpenModel, VerifiesUnlessTold) {
  save_checkpoint(*small_model(), path());
  std::string bytes = file_text(path());
  bytes[bytes.size() - 33] ^=
      1;  // the end of the table of checksums; the digest after it is not compared here
  write_text(path("damaged"), bytes);
  expect_refused(path("damaged"), ErrorCode::kCorruptFile, "");
  EXPECT_NO_THROW(open_model(path("damaged"), {.verify = false}));
}

TEST_F(OpenModel, RefusesTheRestAndSaysWhatItIs) {
  expect_refused(path("nowhere.pt2"), ErrorCode::kNotFound, "no such file");
  expect_refused(folder_.string(), ErrorCode::kInvalidArgument, "is a directory");
  write_text(path("notes.ht"), "only words");
  EXPECT_EQ(model_file_kind(path("notes.ht")), ModelFileKind::kOther);
  expect_refused(path("notes.ht"), ErrorCode::kUnsupported, "a text file");
  write_text(path("empty.pt2"), "");
  expect_refused(path("empty.pt2"), ErrorCode::kUnsupported, "an empty file");
  for (const std::string magic : {"GGUF", "FUGG"}) {
    write_text(path("model.ht"), magic + std::string(20, '\0'));
    EXPECT_EQ(model_file_kind(path("model.ht")), ModelFileKind::kGguf);
    expect_refused(path("model.ht"), ErrorCode::kUnsupported, "a GGUF file. `halftone inspect` describes it");
  }
  // What nobody knows goes by its name, to the reader that knows best what is wrong.
  const std::string unknown("\x01\x02\x03\x04", 4);
  write_text(path("unknown.ht"), unknown);
  EXPECT_EQ(model_file_kind(path("unknown.ht")), ModelFileKind::kHt);
  expect_refused(path("unknown.ht"), ErrorCode::kCorruptFile, "");
  write_text(path("unknown.bin"), unknown);
  expect_refused(path("unknown.bin"), ErrorCode::kUnsupported, "not a model");
}

}  // namespace
}  // namespace halftone
