// Jobs as data: JSON, refusals, selection, partitions.
#include "bench/run/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>

#include "bench/run/test_support.h"
#include "graph/test_support.h"

namespace halftone {
namespace {

using ::testing::ElementsAre;

TEST(BenchJob, GoesThroughJsonUnharmed) {
  BenchJob job;
  job.model = "a \"strange\"\nname.pt2";
  job.mode = "training";
  job.scheme = "int8dq";
  job.backend = "aot_eager";
  job.performance = job.accuracy = job.layers = false;
  job.batch_size = 17;
  job.shapes = "ids:1x128";
  job.seconds = 0.125;
  job.threads = 3;
  job.seed = std::numeric_limits<uint64_t>::max();
  job.baseline = setup_baseline("001");
  job.cache_dir = "/some/where";
  const std::string json = to_json(job);
  EXPECT_EQ(json.find('\n'), std::string::npos);
  EXPECT_EQ(bench_job_from_json(json), job);
  EXPECT_EQ(bench_job_from_json(to_json(BenchJob{})), BenchJob{});
  EXPECT_EQ(bench_job_from_json("{}"), BenchJob{});
}

TEST(BenchJob, RefusesBrokenJson) {
  for (const char* text :
       {"", "{", "[]", "3", R"({"modle": "x"})", R"({"batch_size": "1"})", R"({"seed": -1})",
        R"({"baseline": {"mixed_nm": "true"}})", R"({"baseline": {"mixed_mm": "perhaps"}})",
        R"({"baseline": {"mixed_mm": true}})"}) {
    expect_error(ErrorCode::kCorruptFile, {"job"}, [&] { bench_job_from_json(text); });
  }
}

TEST(BenchJob, MakesSenseOrIsRefused) {
  const auto refused = [](std::initializer_list<std::string> parts,
                          const std::function<void(BenchJob&)>& change) {
    BenchJob job = short_job("tiny_mlp");
    change(job);
    expect_error(ErrorCode::kInvalidArgument, parts, [&] { run_bench(job); });
    expect_error(ErrorCode::kInvalidArgument, parts, [&] { run_bench_suite({job}); });
  };
  refused({"tiny_mpl", "did you mean \"tiny_mlp\""}, [](BenchJob& job) { job.model = "tiny_mpl"; });
  refused({"int8dynamc", "int8dynamic"}, [](BenchJob& job) { job.scheme = "int8dynamc"; });
  refused({"int8static", "halftone ptq MODEL"}, [](BenchJob& job) { job.scheme = "int8static"; });
  refused({"trainin", "training"}, [](BenchJob& job) { job.mode = "trainin"; });
  refused({"halftoon", "halftone"}, [](BenchJob& job) { job.backend = "halftoon"; });
  refused({"without quantization", "int8dq"}, [](BenchJob& job) {
    job.mode = "training";
    job.scheme = "int8dq";
  });
  refused({"x.pt2", "no training step"}, [](BenchJob& job) {
    job.mode = "training";
    job.model = "x.pt2";
  });
  refused({"-1"}, [](BenchJob& job) { job.batch_size = -1; });
  refused({"tiny_mlp", "shapes are for files"}, [](BenchJob& job) { job.shapes = "2x3"; });
  refused({"x.pt2", "either shapes or a batch size"}, [](BenchJob& job) {
    job.model = "x.pt2";
    job.shapes = "2x3";
    job.batch_size = 2;
  });
  refused({"-2 threads"}, [](BenchJob& job) { job.threads = -2; });
  for (const double seconds : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    refused({"seconds"}, [&](BenchJob& job) { job.seconds = seconds; });
}

TEST(BenchJob, SchemesAreTheSeedsAndAutoquants) {
  const std::vector<std::string> schemes = bench_schemes();
  EXPECT_THAT(std::vector<std::string>(schemes.begin(), schemes.begin() + 5),
              ElementsAre("noquant", "int8dynamic", "int8weightonly", "int4weightonly", "autoquant"));
  for (const char* name : {"fp32", "int8wo", "int8dq", "int8dq-7bit", "int4wo", "bf16wo"})
    EXPECT_THAT(schemes, ::testing::Contains(name));
  EXPECT_EQ(default_bench_schemes(), std::vector<std::string>(schemes.begin(), schemes.begin() + 5));
  for (const std::string& name : schemes) EXPECT_NO_THROW(check_bench_scheme(name)) << name;
}

TEST(BenchJob, SchemesHaveTheirBounds) {
  for (const char* name : {"noquant", "none", "fp32"}) {
    EXPECT_FALSE(bench_scheme_config(name).has_value()) << name;
    EXPECT_EQ(bench_accuracy_bound(name).relative_error, 1e-4) << name;
  }
  for (const char* name : {"int4wo", "int4weightonly", "int4dq:64"})
    EXPECT_EQ(bench_accuracy_bound(name).cosine, 0.9) << name;
  for (const char* name : {"int8dynamic", "int8dq-7bit", "bf16wo"})
    EXPECT_EQ(bench_accuracy_bound(name).cosine, 0.98) << name;
  EXPECT_EQ(bench_accuracy_bound("autoquant").cosine, 0.995);
}

TEST(BenchSelection, PartsCoverEverythingOnce) {
  const std::vector<std::string> all = select_bench_models("builtin");
  EXPECT_EQ(all.size(), bench_models().size());
  for (int parts = 1; parts <= static_cast<int>(all.size()); ++parts) {
    std::map<std::string, int> seen;
    for (int part = 1; part <= parts; ++part) {
      BenchSelection selection;
      set_partition(selection, fmt::format("{}/{}", part, parts));
      for (const std::string& name : select_bench_models("builtin", selection)) ++seen[name];
    }
    EXPECT_EQ(seen.size(), all.size());
    for (const auto& [name, times] : seen) EXPECT_EQ(times, 1) << name;
  }
}

TEST(BenchSelection, PartitionsAreKOfN) {
  for (const char* text : {"", "2", "/", "0/3", "4/3", "1/0", "-1/2", "a/b", "1/2/3", " 1/2", "1/2 ", "1.0/2",
                           "99999999999/99999999999"}) {
    BenchSelection selection;
    expect_error(ErrorCode::kInvalidArgument, {"partition"}, [&] { set_partition(selection, text); });
    EXPECT_EQ(selection.parts, 1);
  }
}

TEST(BenchSelection, ByNames) {
  const auto select = [](std::string only, std::string exclude) {
    return select_bench_models("builtin", {.only = std::move(only), .exclude = std::move(exclude)});
  };
  EXPECT_THAT(select("mlp|tiny.*", ""), ElementsAre("mlp", "tiny_mlp"));
  EXPECT_THAT(select("mlp|tiny.*", "mlp"), ElementsAre("tiny_mlp"));
  EXPECT_EQ(select("", "mlp").size(), bench_models().size() - 1);
  const auto refused = [&](std::initializer_list<std::string> parts, const std::string& only,
                           const std::string& exclude) {
    expect_error(ErrorCode::kInvalidArgument, parts, [&] { select(only, exclude); });
  };
  refused({"only", "nobody"}, "nobody", "");
  refused({"exclude", "nobody"}, "", "nobody");
  refused({"only", "(", "regular expression"}, "(", "");
  refused({"no model is left"}, "mlp", ".*");
}

TEST(BenchSelection, FoldersAndFiles) {
  const BenchFolder folder;
  expect_error(ErrorCode::kNotFound, {"nowhere"}, [] { select_bench_models("nowhere"); });
  expect_error(ErrorCode::kInvalidArgument, {"no .pt2"}, [&] { select_bench_models(folder.path.string()); });
  for (const char* name : {"b.pt2", "a.pt2", "notes.txt", "c.pt2.part"})
    std::ofstream(folder.path / name) << "x";
  std::filesystem::create_directory(folder.path / "d.pt2");
  const auto path = [&](const char* name) { return (folder.path / name).string(); };
  EXPECT_THAT(select_bench_models(folder.path.string()), ElementsAre(path("a.pt2"), path("b.pt2")));
  EXPECT_THAT(select_bench_models(folder.path.string(), {.only = "b\\.pt2"}), ElementsAre(path("b.pt2")));
  EXPECT_THAT(select_bench_models(path("a.pt2")), ElementsAre(path("a.pt2")));
  expect_error(ErrorCode::kInvalidArgument, {"notes.txt"}, [&] { select_bench_models(path("notes.txt")); });
}

}  // namespace
}  // namespace halftone
