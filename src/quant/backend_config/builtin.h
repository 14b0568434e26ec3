// The families of patterns that built-in configs are put together from.
#pragma once

#include <string>
#include <vector>

#include "halftone/ptq/backend_config.h"

namespace halftone::backend_config {

using DTypes = std::vector<DTypeConfig>;
using Configs = std::vector<BackendPatternConfig>;

/// quint8 × qint8 → quint8 with a float bias; without a weight; and the dynamic ones.
DTypeConfig weighted_int8();
DTypeConfig plain_int8();
DTypeConfig dynamic_int8();
DTypeConfig dynamic_float16();
/// `base` with results that are fixed to (scale, zero point): sigmoid, tanh.
DTypeConfig with_fixed_result(DTypeConfig base, double scale, int64_t zero_point);

Configs convolutions(const DTypes& dtypes);  ///< of 1 to 3 dimensions, transposed ones too
Configs linears(const DTypes& dtypes);
Configs sums_after_products(const DTypes& dtypes);  ///< conv or linear (+ batch norm) + add (+ relu)
Configs binary_operations(const DTypes& dtypes);    ///< add and mul, with and without relu
Configs batch_norms(const DTypes& dtypes);
Configs operations_with_results_of_their_own(const DTypes& dtypes);  ///< elu, hardswish, …
Configs operations_that_share(const DTypes& dtypes);                 ///< pooling, reshapes, relu, …
Configs operations_with_fixed_results(const DTypeConfig& dtype);
Configs tensor_questions(const DTypes& dtypes);  ///< size and shape
Configs recurrent_layers(const DTypes& dtypes);
Configs embeddings();
Configs layer_norms();

}  // namespace halftone::backend_config
