// Everything that most programs need: get a model, quantize it, compile it, tune it, save it and run it.
//
// Each header below may be included alone, which compiles faster; docs/api.md lists all of them by task. Not included: what
// only benchmarks (halftone/bench/, halftone/compat/) and command-line programs (halftone/cli/) use.
#pragma once

#include "halftone/autograd/aot_autograd.h"
#include "halftone/backend/backend.h"
#include "halftone/backend/recipes.h"
#include "halftone/base/error.h"
#include "halftone/base/log.h"
#include "halftone/base/version.h"
#include "halftone/capture/capture.h"
#include "halftone/capture/capture_module.h"
#include "halftone/capture/open_model.h"
#include "halftone/checkpoint/checkpoint.h"
#include "halftone/compile/compile.h"
#include "halftone/compile/compile_module.h"
#include "halftone/compile/compilers.h"
#include "halftone/decoder/conversation.h"
#include "halftone/decoder/generate.h"
#include "halftone/graph/graph_module.h"
#include "halftone/graph/tensor_file.h"
#include "halftone/ptq/static_int8.h"
#include "halftone/quant/diagnose.h"
#include "halftone/quant/quantize.h"
#include "halftone/quant/weight_format.h"
#include "halftone/text/chat_template.h"
#include "halftone/text/tokenizer.h"
#include "halftone/tune/autoquant.h"
#include "halftone/tune/tune.h"
