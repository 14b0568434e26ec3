// halftone autoquant: measures which scheme each layer should have, and writes the model quantized so.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "autoquant_job.h"
#include "common/console.h"

namespace halftone::cli {

namespace {

constexpr const char* kAutoquantDescription =
    "Measure which scheme is fastest for each layer, and quantize it so\n\n"
    "Records the shapes that each layer sees, measures every scheme on them with the kernels that\n"
    "would run, keeps those within the layer's error bound, and gives layers back to higher precision\n"
    "until the whole model holds --min-cosine. In the end the plan races fp32 and the best single\n"
    "schemes, and the fastest is taken: where quantization does not pay, that is fp32.\n\n"
    "The plan is a JSON file: layers, candidates, times, errors, choices, reasons. Edit a \"choice\" and\n"
    "replay it with --plan: nothing is measured then, and the same plan gives the same bytes.";
constexpr const char* kAutoquantExamples = R"(Examples:
  halftone autoquant model.pt2 -o model.ht
  halftone autoquant model.pt2 --inputs short.safetensors --inputs long.safetensors -o model.ht
  halftone autoquant model.pt2 --min-cosine 0.999 --plan-out plan.json -o model.ht
  halftone autoquant model.pt2 --plan plan.json -o model.ht
  halftone autoquant --show-cache)";

void add_measuring(CLI::App& command, AutoquantRequest& request) {
  add_input_options(command, request.inputs,
                    "A call to calibrate with; may be repeated, with other shapes too\n"
                    "(default: the model's sample inputs)");
  command
      .add_option("--schemes", request.schemes,
                  fmt::format("Only these, commas between, of {}\n(default: {})", "autoquant's list",
                              fmt::join(default_autoquant_schemes(), ",")))
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--min-cosine", request.min_cosine,
                  "Least cosine of the model's results to fp32's; 0: no budget")
      ->type_name("X")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--min-layer-cosine", request.min_layer_cosine, "The same for each layer's output")
      ->type_name("X")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--include", request.include, "Only layers whose whole name matches")
      ->type_name("REGEX")
      ->check(CLI::Validator(check_pattern, ""));
  command.add_option("--exclude", request.exclude, "Not these layers")
      ->type_name("REGEX")
      ->check(CLI::Validator(check_pattern, ""));
  command.add_option("--time-limit", request.time_limit, "Seconds for everything")
      ->type_name("S")
      ->capture_default_str()
      ->check(CLI::Validator(check_positive, "POSITIVE"));
  command.add_flag("--no-race", request.no_race,
                   "Trust the sum of the layers: do not measure the whole model at the end");
  command.add_flag("--allow-unseen", request.allow_unseen,
                   "Layers that the inputs do not reach stay as they are (default: an error)");
}

/// What a replayed plan has no use for would be ignored in silence.
void check_replay(const CLI::App& command) {
  if (command.count("--plan") == 0) return;
  for (const char* option : {"--inputs", "--shapes", "--schemes", "--min-cosine", "--min-layer-cosine",
                             "--include", "--exclude", "--time-limit", "--no-race", "--allow-unseen"}) {
    if (command.count(option) > 0)
      throw CLI::ValidationError(option, "does not go with --plan, which measures nothing");
  }
}

}  // namespace

void add_autoquant(CLI::App& app, CommandLine& line) {
  struct Actions {
    AutoquantRequest request;
    bool show = false, clear = false;
  };
  auto actions = std::make_shared<Actions>();
  AutoquantRequest& request = actions->request;
  CLI::App* command = app.add_subcommand("autoquant", kAutoquantDescription);
  command->footer(kAutoquantExamples);
  add_model_options(*command, request.model);
  command->get_option("MODEL")->required(false);  // the cache has no model
  add_measuring(*command, request);
  auto* cache = command
                    ->add_option("--cache", request.cache,
                                 "Folder of measurements (default: halftone/autoquant in $XDG_CACHE_HOME,\n"
                                 "or else in ~/.cache)")
                    ->type_name("DIR");
  command->add_flag("--no-cache", request.no_cache, "Measure again, and keep nothing")->excludes(cache);
  auto* clear = command->add_flag("--clear-cache", actions->clear, "Forget all measurements, and stop");
  command->add_flag("--show-cache", actions->show, "List the measurements, and stop")->excludes(clear);
  auto* plan_out = command->add_option("--plan-out", request.plan_out, "Write the plan")->type_name("P.json");
  command->add_option("--plan", request.plan, "Replay this plan: nothing is measured")
      ->type_name("P.json")
      ->excludes(plan_out);
  add_output_options(*command, request.output, "The checkpoint to write");
  add_common_options(*command, line.common);
  command->callback([actions, command, &line] {
    check_replay(*command);
    if (actions->request.model.path.empty() && !actions->show && !actions->clear)
      throw CLI::RequiredError("MODEL");
    line.job = [actions, &line](Console& console) {
      if (actions->clear) return clear_autoquant_cache(actions->request, line.common, console);
      if (actions->show) return show_autoquant_cache(actions->request, line.common, console);
      run_autoquant(actions->request, line.common, console);
    };
  });
}

}  // namespace halftone::cli
