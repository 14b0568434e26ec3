// Text from decoders in GGUF files.
#include "api.h"
#include "halftone/decoder/generate.h"

namespace halftone::python {
namespace {

GenerateOptions options_of(const py::dict& given) {
  GenerateOptions options;
  options.max_tokens = given["max_tokens"].cast<int64_t>();
  options.sampling.temperature = given["temperature"].cast<double>();
  options.sampling.top_k = given["top_k"].cast<int64_t>();
  options.sampling.top_p = given["top_p"].cast<double>();
  options.sampling.min_p = given["min_p"].cast<double>();
  options.sampling.repeat_penalty = given["repeat_penalty"].cast<double>();
  options.sampling.repeat_last = given["repeat_last"].cast<int64_t>();
  options.sampling.seed = given["seed"].cast<uint64_t>();
  options.stop = given["stop"].cast<std::vector<std::string>>();
  options.parse_special = given["parse_special"].cast<bool>();
  options.logprobs = given["logprobs"].cast<bool>();
  const py::object on_text = given["on_text"];
  if (on_text.is_none()) return options;
  options.on_text = [callback = Callback(on_text)](std::string_view text) {
    const py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();  // Ctrl-C ends the answer
    const py::object answer = callback.function()(text);
    return answer.is_none() || py::bool_(answer).cast<bool>();
  };
  return options;
}

GeneratedText generate(const Generator& generator, const std::string& prompt, const py::dict& given) {
  const GenerateOptions options = options_of(given);
  const WithoutGil no_gil;
  return generator.generate(prompt, options);
}

py::dict info_of(const Generator& generator) {
  const DecoderInfo& info = generator.info();
  py::dict result;
  result["architecture"] = info.architecture;
  result["name"] = info.name;
  result["scheme"] = info.scheme;
  result["layers"] = info.layers;
  result["width"] = info.width;
  result["heads"] = info.heads;
  result["kv_heads"] = info.kv_heads;
  result["vocabulary"] = info.vocabulary;
  result["context"] = info.context;
  result["parameters"] = info.parameters;
  result["weight_bytes"] = info.weight_bytes;
  result["cache_bytes"] = info.cache_bytes;
  return result;
}

Generator open(const std::string& path, const std::string& scheme, int64_t context, int threads,
               const py::object& progress) {
  const DecoderOptions options{
      .scheme = scheme, .context = context, .threads = threads, .progress = to_progress(progress)};
  const WithoutGil no_gil;
  return Generator::open(path, options);
}

}  // namespace

void bind_generator(py::module_& m) {
  py::class_<GeneratedText>(m, "GeneratedText")
      .def_readonly("text", &GeneratedText::text)
      .def_readonly("tokens", &GeneratedText::tokens)
      .def_readonly("logprobs", &GeneratedText::logprobs)
      .def_readonly("prompt_tokens", &GeneratedText::prompt_tokens)
      .def_property_readonly(
          "stop_reason", [](const GeneratedText& text) { return std::string(to_string(text.stop_reason)); })
      .def_readonly("prompt_seconds", &GeneratedText::prompt_seconds)
      .def_readonly("answer_seconds", &GeneratedText::answer_seconds)
      .def("__str__", [](const GeneratedText& text) { return text.text; });
  py::class_<Generator>(m, "Generator")
      .def_static("open", &open, py::arg("path"), py::arg("scheme"), py::arg("context"), py::arg("threads"),
                  py::arg("progress"))
      .def("generate", &generate, py::arg("prompt"), py::arg("options"))
      .def(
          "logits",
          [](const Generator& self, const std::vector<int64_t>& tokens) { return self.logits(tokens); },
          py::arg("tokens"), py::call_guard<WithoutGil>())
      .def(
          "encode",
          [](const Generator& self, const std::string& text) { return self.tokenizer().encode(text); },
          py::arg("text"))
      .def(
          "decode",
          [](const Generator& self, const std::vector<int64_t>& tokens) {
            return self.tokenizer().decode(tokens);
          },
          py::arg("tokens"))
      .def_property_readonly("info", &info_of)
      .def_property_readonly("chat_template", [](const Generator& self) { return self.chat_template(); });
}

}  // namespace halftone::python
