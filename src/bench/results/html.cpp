// The HTML report: one file, its scripts allowed by hash.
#include <array>
#include <span>

#include "archive/bytes/text_file.h"
#include "base/errors.h"
#include "base/sha256.h"
#include "bench/results/assets.h"
#include "bench/results/text.h"
#include "halftone/bench/results.h"

namespace halftone {
namespace {

std::string base64(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8U | (k < count ? bytes[i + k] : 0U);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[group >> (18 - 6 * k) & 63U] : '=';
  }
  return text;
}

/// The name of an inline script or style in a content security policy.
std::string policy_hash(std::string_view text) {
  return fmt::format("'sha256-{}'", base64(sha256(std::as_bytes(std::span(text.data(), text.size())))));
}

std::string report_script() {
  return fmt::format("\"use strict\";\n(() => {{\n{}\n{}\n{}\n{}}})();\n", assets::core_js, assets::charts_js,
                     assets::tables_js, assets::main_js);
}

/// Nothing but our own styles and scripts, known by their hashes, is allowed to run or to be loaded. So a
/// name that got around the escaping could still do nothing.
std::string policy(std::string_view report) {
  return fmt::format(
      "default-src 'none'; base-uri 'none'; form-action 'none'; style-src {}; script-src {} {}",
      policy_hash(assets::report_css), policy_hash(assets::chart_js), policy_hash(report));
}

/// The licence of Chart.js has to go where its code goes.
std::string footer() {
  return fmt::format(
      "<footer><p>Made by Halftone. Nothing here is loaded from elsewhere.</p>\n<details><summary>Charts are "
      "drawn by "
      "Chart.js: its licence</summary><pre>{}</pre></details></footer>\n",
      html_text(assets::chart_js_license));
}

}  // namespace

std::string to_html(const BenchResults& results) {
  const std::string report = report_script();
  const std::string title = html_text(results.title.empty() ? "Benchmark results" : results.title);
  std::string page = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", policy(report));
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += fmt::format("<meta name=\"description\" content=\"{}: {} results on {}\">\n", title,
                      results.rows.size(), html_text(results.machine.cpu));
  page += fmt::format("<title>{} · Halftone</title>\n<style>{}</style>\n</head>\n<body>\n", title,
                      assets::report_css);
  page += fmt::format("<noscript><h1>{}</h1><pre>{}</pre></noscript>\n", title,
                      html_text(describe_bench(results.rows)));
  page += assets::page_html;
  page += footer();
  page += fmt::format("<script type=\"application/json\" id=\"results\">{}</script>\n",
                      json_for_script(to_json(results)));
  page +=
      fmt::format("<script>{}</script>\n<script>{}</script>\n</body>\n</html>\n", assets::chart_js, report);
  return page;
}

void write_bench_html(const std::string& path, const BenchResults& results) {
  write_text_file(path, to_html(results));
}

}  // namespace halftone
