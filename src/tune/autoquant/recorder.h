// The record of calibration: the shapes at each site and how often, and some rows of real activations.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "halftone/graph/sample.h"
#include "halftone/tune/autoquant_plan.h"
#include "tune/autoquant/problem.h"

namespace halftone::aq {

/// Of a site, at one shape.
struct SiteShape {
  SeenValues seen;  ///< of the neighbourhood's values, in the first call of this shape
  int64_t calls = 0;
};

/// Rows of what a linear reads, at one shape: a sample of all calls that does not grow with their number.
struct RowSample {
  std::vector<int64_t> sizes;  ///< of the whole activation
  c10::ScalarType dtype = c10::ScalarType::Float;
  int64_t calls = 0;
  at::Tensor rows;  ///< [most, k]; the first `filled` are there
  int64_t filled = 0;
  int64_t offered = 0;  ///< since the beginning
};

/// Memory is bounded whatever number of calls is recorded: sites × shapes × rows.
class Recorder {
 public:
  /// `model` must outlive it and stay as it is.
  Recorder(const MarkedModel& model, uint64_t seed);

  /// Runs `sample` in `session`, whose module must be the model's, and records it as `calls` calls.
  c10::IValue run(Session& session, const Sample& sample, int64_t calls = 1);

  int64_t calls() const { return calls_; }
  const Neighbourhood& neighbourhood(size_t group, size_t site) const {
    return sites_.at(group).at(site).part;
  }
  /// Most frequent first. Rare shapes beyond the bound are counted with the nearest one.
  std::vector<SiteShape> shapes(size_t group, size_t site) const;
  /// Of the value that a linear reads; empty if it never ran.
  const std::vector<RowSample>& rows(const Node* linear) const;

 private:
  struct RecordedSite {
    Neighbourhood part;
    std::vector<const Value*> outside;
    std::map<std::string, SiteShape> shapes;
  };
  void see(const Value* value, const c10::IValue& held);
  void keep_rows(const Value* x, const at::Tensor& tensor);
  void offer(RowSample& sample, const at::Tensor& rows);
  void end_call();

  const MarkedModel& model_;
  std::mt19937_64 random_;
  std::vector<std::vector<RecordedSite>> sites_;  ///< by group and site
  std::map<const Value*, std::vector<RowSample>> rows_;
  std::map<const Value*, bool> channels_first_;  ///< of what linears read
  SeenValues now_;                               ///< of the present call
  int64_t calls_ = 0;
  int64_t weight_ = 1;  ///< of the present call
};

}  // namespace halftone::aq
