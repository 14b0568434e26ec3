// The parts of the HTML report that are not data, put into the library by embed.cmake.
#pragma once

#include <string_view>

namespace halftone::assets {

extern const std::string_view page_html;
extern const std::string_view report_css;
extern const std::string_view core_js;
extern const std::string_view charts_js;
extern const std::string_view tables_js;
extern const std::string_view main_js;
extern const std::string_view chart_js;          ///< Chart.js, minified
extern const std::string_view chart_js_license;  ///< its copyright and licence

}  // namespace halftone::assets
