// Operators that no file may call: refused by every way of reading a .ht, and never written into one.
#include <filesystem>

#include "checkpoint/records/stored_tensors.h"
#include "checkpoint/test_support.h"
#include "halftone/backend/backend.h"

namespace halftone {
namespace {

using ::testing::HasSubstr;

struct Hostile {
  const char* line;
  const char* reason;
};

const Hostile kHostile[] = {
    {R"(%s: f32[16] = aten::from_file("secret.bin", true, 16))", "aten::from_file reads and writes files"},
    {"%s: tensor = inductor::_reinterpret_tensor(%y, [4096], [1], 64)", "reinterprets the memory"},
    {"%s: tensor = inductor::_alloc_from_pool(%y, 4096, dtype:f32, [4], [1])", "reinterprets the memory"},
    {"%s: tensor = aten::_reshape_alias(%y, [4096], [1])", "reinterprets the memory"},
    {"%s: tensor = aten::set_.source_Tensor(%y, %y)", "reinterprets the memory"},
    {"%s: tensor = aten::resize_(%y, [4096])", "reinterprets the memory"},
    {R"(aten::_print("owned"))", "writes to the terminal"},
    {"%s: tensor = made_up::magic(%y)", "made_up::magic"},
};

std::string graph_with(const std::string& line) {
  return "graph(%w: parameter \"fc.weight\" f32[3, 4], %x: user \"x\" f32[2, 4]) {\n"
         "  %y: f32[2, 3] = aten::linear(%x, %w)  @ \"fc\"\n  " +
         (line.empty() ? line : line + "  @ \"layer.7\"\n  ") + "return %y\n}\n";
}

class HostileGraph : public CheckpointTest {
 protected:
  /// A file whose graph has one line more, with right digests.
  std::string write(const std::string& line) const {
    const auto module = module_from_text(graph_with(""), {{"fc.weight", at::ones({3, 4})}});
    save_checkpoint(*module, path());
    const HtFile file = HtFile::open(path(), LoadMode::kRead);
    auto metadata = file.metadata().values();
    metadata[ht::kGraphKey] = graph_with(line);
    std::vector<SafetensorsTensor> tensors;
    for (const SafetensorsEntry& entry : file.tensors().entries()) {
      if (!is_filler(entry.name)) tensors.push_back({entry.name, entry.dtype, entry.shape, entry.bytes});
    }
    write_ht(path("evil.ht"), tensors, metadata);
    return path("evil.ht");
  }
};

TEST_F(HostileGraph, IsRefusedByLoadAndByVerify) {
  for (const auto& [line, reason] : kHostile) {
    const std::string evil = write(line);
    expect_error(ErrorCode::kUnsupported, {"evil.ht", reason}, [&] { load_checkpoint(evil); });
    expect_error(ErrorCode::kUnsupported, {"evil.ht", reason}, [&] { load(evil); });
    const CheckpointInfo info = verify_checkpoint(evil);
    ASSERT_EQ(info.findings.size(), 1U) << line;
    EXPECT_THAT(info.findings[0], HasSubstr(reason));
  }
}

TEST_F(HostileGraph, LyingSizesInABranchAreRefused) {
  const auto branches = [](const std::string& type) {
    return "%p: bool[] = aten::any(%y)\n  %s: f32[2, 3] = builtin::cond(%p, graph(%a: user \"a\" f32[2, 3]) "
           "{\n      %b: " +
           type +
           " = aten::cat([%a, %a], 0)\n      %d: f32[2, 3] = aten::slice.Tensor(%b, 0, 0, 2)\n      return "
           "%d\n    }, graph(%a: user \"a\" f32[2, 3]) {\n      return %a\n    }, [%y])";
  };
  load_checkpoint(write(branches("f32[4, 3]")));
  const std::string evil = write(branches("f32[2, 3]"));
  expect_error(ErrorCode::kCorruptFile, {"evil.ht", "builtin::cond (%s)", "layer.7", "aten::cat (%b)"},
               [&] { load_checkpoint(evil); });
  expect_error(ErrorCode::kCorruptFile, {"evil.ht", "aten::cat (%b)"}, [&] { load(evil); });
  EXPECT_EQ(verify_checkpoint(evil).findings.size(), 1U);
}

TEST_F(HostileGraph, IsNotSaved) {
  for (const auto& [line, reason] : kHostile) {
    if (std::string_view(line).find("made_up") != std::string_view::npos)
      continue;  // no such node can be made
    const auto module = module_from_text(graph_with(line), {{"fc.weight", at::ones({3, 4})}});
    expect_error(ErrorCode::kUnsupported, {"cannot be saved", reason, "layer.7"},
                 [&] { save_checkpoint(*module, path("new.ht")); });
    EXPECT_FALSE(std::filesystem::exists(path("new.ht")));
    Backend backend(eager_backend_recipe());
    Sample sample;
    sample.args = {at::ones({2, 4})};
    backend.build(module, {}, {sample});
    expect_error(ErrorCode::kUnsupported, {"cannot be saved", reason},
                 [&] { save(backend, path("new.ht")); });
    EXPECT_FALSE(std::filesystem::exists(path("new.ht")));
  }
}

TEST_F(HostileGraph, MemoryWithoutContentIsZeroAfterLoading) {
  const auto module = module_from_text(R"(graph(%x: user "x" f32[64, 64]) {
  %e: f32[64, 64] = aten::empty_like(%x)
  return %e
})");
  save_checkpoint(*module, path());
  EXPECT_TRUE(verify_checkpoint(path()).findings.empty());
  Session session(load_checkpoint(path()));
  const at::Tensor x = at::full({64, 64}, 7.0);
  for (int i = 0; i < 3; ++i) {
    { const at::Tensor dirt = at::full({64, 64}, 7.0); }
    EXPECT_TRUE(session.run({x})[0].toTensor().eq(0).all().item<bool>());
  }
  save_checkpoint(session.module(), path("again.ht"));
  EXPECT_EQ(print_graph(load_checkpoint(path("again.ht"))->graph()), print_graph(session.module().graph()));
}

}  // namespace
}  // namespace halftone
