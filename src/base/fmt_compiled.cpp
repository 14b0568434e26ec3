// The functions of fmt that need no template arguments, compiled once for the components that do not know
// torch. Header-only use cost 3 to 4 s in every file that formats a message. Components that know torch use
// torch's copy of fmt, which has another inline namespace: src/graph/fmt_compiled.cpp.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
#if FMT_VERSION < 110000
template void buffer<char>::append(const char*, const char*);
template void vformat_to(buffer<char>&, string_view, basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);
#endif
}  // namespace detail
FMT_END_NAMESPACE
