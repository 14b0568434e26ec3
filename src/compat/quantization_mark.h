// The mark on a model that was quantized, kept beside it: C++ modules have no attributes to set.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "halftone/backend/backend.h"

namespace halftone::baseline {

struct QuantizationMark {
  std::mutex mutex;  ///< held while the model is quantized
  std::string name;  ///< of the context; empty: not quantized yet
};

/// The same one for every handle on the model, as long as the model lives. A new model never gets the mark of
/// one that stood at its address: models are told apart by their owners.
std::shared_ptr<QuantizationMark> mark_of(const ModelSource& model);

}  // namespace halftone::baseline
